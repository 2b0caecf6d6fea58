"""`--restart` on a store: moves the checkpoints of a `log_dir` aside."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from moxing.framework import file
from moxing.framework.file.urls import RemotePath
from moxing.framework.util.thread_pool import ThreadPool
from moxing.tensorflow.executor.checkpoints.files import MARKER, PREFIX
from moxing.tensorflow.executor.checkpoints.restart import ASIDE
from moxing.tensorflow.executor.store.remote_directory import PARALLEL_REQUESTS, RemoteDirectory

#: Urls that this process has moved aside. What it trained itself since then stays.
_moved: set[str] = set()


def move_aside_on_store(location: RemotePath) -> None:
    """Moves the checkpoints of a `log_dir` into a new directory below it; once per process and url.

    Copies everything, then removes the marker, then the rest: at any moment one of the two directories is complete.

    Args:
      location: the `log_dir`.
    """
    if location.url in _moved:
        return
    _moved.add(location.url)
    remote = RemoteDirectory(location, "")
    names = [name for name in remote.files if name.startswith(PREFIX)]
    names += [MARKER] if MARKER in remote.files else []
    if not names:
        return
    number = 1
    while f"{ASIDE}{number}" in remote.folders:
        number += 1
    target = location.child(f"{ASIDE}{number}")
    with ThreadPool(PARALLEL_REQUESTS, thread_name_prefix="mox-move") as pool:
        *others, last = names  # the marker, if there is one
        list(pool.map(lambda name: file.copy(location.child(name).url, target.child(name).url), others))
        file.copy(location.child(last).url, target.child(last).url)
        file.remove(location.child(last).url)
        list(pool.map(lambda name: file.remove(location.child(name).url), others))
    tf.logging.info("--restart: moved the checkpoints of %s to %s.", location.url, target.url)

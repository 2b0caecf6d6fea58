"""Fetches what a run needs from its `log_dir` and `checkpoint_path` on a store, and no more."""

from __future__ import annotations

import os

import tensorflow.compat.v1 as tf

from moxing.framework.file.urls import RemotePath
from moxing.framework.util.thread_pool import ThreadPool
from moxing.tensorflow.datasets.bad_samples import FILE_NAME as BAD_SAMPLES
from moxing.tensorflow.executor.checkpoints.files import MARKER, PREFIX, checkpoint_prefix, valid_checkpoints
from moxing.tensorflow.executor.checkpoints.labels import labels_path
from moxing.tensorflow.executor.checkpoints.restart import ASIDE
from moxing.tensorflow.executor.store.remote_directory import (
    PARALLEL_REQUESTS,
    SAVED_MODEL,
    Checkpoints,
    RemoteDirectory,
    index_step,
)

_LABELS = os.path.basename(labels_path(""))


def fetch_log_dir(remote: RemoteDirectory, training: bool) -> Checkpoints:
    """Fetches the small files of an earlier run from its `log_dir`; the checkpoint to start from comes later.

    Args:
      remote: the `log_dir`.
      training: true in TRAIN, which also needs the best checkpoints of subdirectories.

    Returns:
      The checkpoints that are on the store.
    """
    remote.fetch([_LABELS, BAD_SAMPLES])
    on_store: Checkpoints = {}
    if remote.fetch_marker():
        on_store[""] = remote.checkpoints()
    elif any(name.startswith(PREFIX) for name in remote.files):
        tf.logging.warning(
            "%s has files of checkpoints and no object %r that names them: an upload was interrupted. Ignoring them.",
            remote.location.url,
            MARKER,
        )
    folders = [name for name in remote.folders if not name.startswith(ASIDE)]
    with ThreadPool(PARALLEL_REQUESTS, thread_name_prefix="mox-list") as pool:
        listed = pool.map(
            lambda name: RemoteDirectory(remote.location.child(name), f"{remote.directory}/{name}"), folders
        )
        for name, folder in zip(folders, listed, strict=True):
            if SAVED_MODEL not in folder.files and "variables" in folder.folders:
                continue  # an interrupted upload of an export: its version can be used again
            os.makedirs(folder.directory, exist_ok=True)
            # A directory with event files is the log_dir of another training.
            is_own = not any(".tfevents." in file_name for file_name in folder.files)
            if training and is_own and folder.fetch_marker():
                on_store[name] = folder.checkpoints()
                folder.fetch_checkpoint(valid_checkpoints(folder.directory)[0])
    return on_store


def fetch_checkpoint_path(location: RemotePath, directory: str) -> tuple[str, RemoteDirectory]:
    """Fetches the checkpoint of a `checkpoint_path`; of a directory only the names of its checkpoints.

    Args:
      location: a directory or the prefix of a checkpoint.
      directory: the local directory to fetch into.

    Returns:
      The local path that replaces the url, and the directory that holds the checkpoint.
    """
    os.makedirs(directory, exist_ok=True)
    if location.backend.is_directory(location.path):
        remote = RemoteDirectory(location, directory)
        if not remote.fetch_marker():
            remote.fetch(name for name in remote.files if index_step(name) is not None)
        remote.fetch([_LABELS])
        return directory, remote
    path, _, name = checkpoint_prefix(location.path).rpartition("/")
    parent = RemotePath(location.backend, path, location.url.rpartition("/")[0])
    remote = RemoteDirectory(parent, directory)
    remote.fetch([_LABELS])
    remote.fetch_checkpoint(name)
    return os.path.join(directory, os.path.basename(location.path)), remote

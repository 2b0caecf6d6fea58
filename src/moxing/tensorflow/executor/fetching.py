"""Checkpoints of a store, fetched to the local disk: no more of them than a run needs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import tensorflow.compat.v1 as tf

from moxing.framework import file
from moxing.framework.file.backends import Place
from moxing.framework.file.errors import MoxFileNotExistsException
from moxing.framework.file.progress import transfer_bar
from moxing.tensorflow.datasets.journal import FILE_NAME as BAD_SAMPLES
from moxing.tensorflow.executor import checkpoint
from moxing.tensorflow.executor.checkpoint import MARKER, PREFIX
from moxing.tensorflow.executor.labels import labels_path

SAVED_MODEL = "saved_model.pb"
#: Where `--restart` moves checkpoints.
ASIDE = "before_restart_"
#: How many directories are looked at, or files copied, at a time.
AT_ONCE = 16
#: So many bytes take a while, and a line says so.
WORTH_A_LINE = 10_000_000
#: Bytes of a name that every usual file system takes.
_LONGEST_NAME = 255
_NAME = re.compile(r'[^/\\"\0-\x1f]+')

#: Files of checkpoints on the store: by directory, relative to `log_dir`, and by the checkpoint's name.
Checkpoints = dict[str, dict[str, set[str]]]


class RemoteDirectory:
    """A directory of a store, and the local one that stands for it.

    Args:
      place: the directory of the store; it may be missing.
      directory: the local one.

    Attributes:
      files: the sizes of its files by name.
      folders: the names of the directories in it.
    """

    def __init__(self, place: Place, directory: str) -> None:
        self.place, self.directory = place, directory
        entries = [entry for entry in place.backend.entries(place.path) or [] if _is_name(entry.relative)]
        self.files = {entry.relative: entry.length for entry in entries if not entry.is_directory}
        # A store may have a file and a directory of one name, a disk cannot.
        self.folders = sorted({entry.relative for entry in entries if entry.is_directory} - self.files.keys())

    def look_again(self) -> bool:
        """Whether the store has other files by now; then the checkpoints that were fetched are forgotten.

        A training goes on while others read what it saves, and removes what it does not keep.
        """
        now = RemoteDirectory(self.place, self.directory)
        if now.files == self.files:
            return False
        self.files, self.folders = now.files, now.folders
        for name in os.listdir(self.directory):
            if name == MARKER or name.startswith(PREFIX):
                os.remove(os.path.join(self.directory, name))
        self.fetch_marker()
        return True

    def fetch(self, names: Iterable[str]) -> None:
        """Brings those of the files that are on the store and not here yet."""
        wanted = [
            name for name in names if name in self.files and not os.path.exists(os.path.join(self.directory, name))
        ]
        if not wanted:
            return
        if (size := sum(self.files[name] for name in wanted)) >= WORTH_A_LINE:
            tf.logging.info("Fetching %.1f MB from %s.", size / 1e6, self.place.url)
        os.makedirs(self.directory, exist_ok=True)
        threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="mox-fetch")
        with transfer_bar(size, "Fetching"), threads as pool:
            list(pool.map(self._fetch_file, wanted))

    def _fetch_file(self, name: str) -> None:
        try:
            file.copy(self.place.child(name).url, os.path.join(self.directory, name))
        except MoxFileNotExistsException:
            # Removed since it was listed: what is missing shows when the checkpoint is read.
            tf.logging.warning("%s is not there any more.", self.place.child(name).url)

    def fetch_checkpoint(self, prefix: str) -> None:
        """Brings the files of a checkpoint."""
        self.fetch(self.files_of(os.path.basename(prefix)))

    def files_of(self, name: str) -> set[str]:
        """The files of a checkpoint: `name.index` and so on, in the V1 format `name` itself."""
        return {found for found in self.files if found == name or found.startswith(name + ".")}

    def fetch_marker(self) -> bool:
        """Brings the file that names the checkpoints; false where there is none.

        What it names stands in this directory, whatever it says: others can write to a store, and files that a run
        does not need any more it removes.
        """
        self.fetch([MARKER])
        path = os.path.join(self.directory, MARKER)
        if not os.path.exists(path):
            return False
        named = [os.path.basename(prefix) for prefix in reversed(checkpoint.listed(self.directory))]
        if not named:
            # Damaged. The last file of a checkpoint that is uploaded is its index.
            found = {name: _step(name) for name in self.files if _step(name) is not None}
            named = [name.removesuffix(".index") for name in sorted(found, key=lambda name: found[name] or 0)]
        named = [name for name in named if _is_name(name)]
        if not named:
            os.remove(path)
            return False
        file.write(path, checkpoint.marker_text(named))
        return True

    def checkpoints(self) -> dict[str, set[str]]:
        """The files of the checkpoints that the marker here names."""
        names = [os.path.basename(prefix) for prefix in checkpoint.listed(self.directory)]
        return {name: self.files_of(name) for name in names}


def _is_name(text: str) -> bool:
    """Whether a part of a key can be the name of a local file."""
    is_short = len(os.fsencode(text)) <= _LONGEST_NAME
    return text not in (".", "..") and is_short and _NAME.fullmatch(text) is not None


def _step(name: str) -> int | None:
    match = re.fullmatch(rf"{re.escape(PREFIX)}-(\d+)\.index", name)
    return int(match[1]) if match else None


def fetch_log_dir(remote: RemoteDirectory, training: bool) -> Checkpoints:
    """Brings what a run must know of an earlier one, except the checkpoint that it begins with.

    Args:
      remote: the `log_dir`.
      training: true in TRAIN, which goes on with the best checkpoints too.

    Returns:
      The checkpoints that are on the store.
    """
    remote.fetch([os.path.basename(labels_path("")), BAD_SAMPLES])
    known: Checkpoints = {}
    if remote.fetch_marker():
        known[""] = remote.checkpoints()
    elif any(name.startswith(PREFIX) for name in remote.files):
        tf.logging.warning(
            "%s holds files of checkpoints and no object %r that names them: an upload was cut off, and they do not "
            "count.",
            remote.place.url,
            MARKER,
        )
    folders = [name for name in remote.folders if not name.startswith(ASIDE)]
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="mox-list") as pool:
        found = pool.map(lambda name: RemoteDirectory(remote.place.child(name), f"{remote.directory}/{name}"), folders)
        for name, folder in zip(folders, found, strict=True):
            if SAVED_MODEL not in folder.files and "variables" in folder.folders:
                continue  # an export whose upload was cut off: its name is free
            os.makedirs(folder.directory, exist_ok=True)
            # Beside event files there are the checkpoints of another training.
            is_own = not any(".tfevents." in file_name for file_name in folder.files)
            if training and is_own and folder.fetch_marker():
                known[name] = folder.checkpoints()
                folder.fetch_checkpoint(checkpoint.listed(folder.directory)[0])
    return known


def fetch_named(place: Place, directory: str) -> tuple[str, RemoteDirectory]:
    """Brings what `checkpoint_path` names.

    Args:
      place: a directory or a checkpoint's prefix.
      directory: where to.

    Returns:
      The local path in place of the url, and the directory that the checkpoint is in.
    """
    os.makedirs(directory, exist_ok=True)
    labels = os.path.basename(labels_path(""))
    if place.backend.is_directory(place.path):
        remote = RemoteDirectory(place, directory)
        if not remote.fetch_marker():
            remote.fetch(name for name in remote.files if _step(name) is not None)
        remote.fetch([labels])
        return directory, remote
    path, _, name = checkpoint.without_ending(place.path).rpartition("/")
    parent = Place(place.backend, path, place.url.rpartition("/")[0])
    remote = RemoteDirectory(parent, directory)
    remote.fetch([labels])
    remote.fetch_checkpoint(name)
    return os.path.join(directory, os.path.basename(place.path)), remote


def set_aside(place: Place) -> None:
    """Moves the checkpoints of a `log_dir` into a directory of their own, for a fresh start; once in a process.

    First everything is copied, then the marker goes, then the rest: at any moment one of the two places is whole.

    Args:
      place: the `log_dir`.
    """
    if place.url in _set_aside:
        return
    _set_aside.add(place.url)
    remote = RemoteDirectory(place, "")
    names = [name for name in remote.files if name.startswith(PREFIX)]
    names += [MARKER] if MARKER in remote.files else []
    if not names:
        return
    number = 1
    while f"{ASIDE}{number}" in remote.folders:
        number += 1
    target = place.child(f"{ASIDE}{number}")
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="mox-move") as pool:
        *others, last = names  # the marker
        list(pool.map(lambda name: file.copy(place.child(name).url, target.child(name).url), others))
        file.copy(place.child(last).url, target.child(last).url)
        file.remove(place.child(last).url)
        list(pool.map(lambda name: file.remove(place.child(name).url), others))
    tf.logging.info("--restart: moved the checkpoints of %s to %s.", place.url, target.url)


#: Directories that were set aside: what the process itself has trained since then stays.
_set_aside: set[str] = set()

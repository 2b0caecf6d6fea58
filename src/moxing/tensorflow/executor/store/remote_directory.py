"""A directory of a store and its local copy: lists its files, fetches those that are asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import tensorflow.compat.v1 as tf

from moxing.framework import file
from moxing.framework.file.errors import MoxFileNotExistsException
from moxing.framework.file.progress import transfer_bar
from moxing.framework.file.urls import RemotePath
from moxing.framework.util.thread_pool import ThreadPool
from moxing.tensorflow.executor.checkpoints.files import MARKER, PREFIX, marker_text, valid_checkpoints

SAVED_MODEL = "saved_model.pb"
#: Directories listed, or files copied, in parallel.
PARALLEL_REQUESTS = 16
#: Transfers of this many bytes are logged.
LOGGED_BYTES = 10_000_000
#: Longest file name, in bytes, on common file systems.
_LONGEST_NAME = 255
_NAME = re.compile(r'[^/\\"\0-\x1f]+')

#: Files of checkpoints on the store, by directory relative to `log_dir` and by name of the checkpoint.
Checkpoints = dict[str, dict[str, set[str]]]


class RemoteDirectory:
    """A directory of a store and its local copy.

    Args:
      location: the directory of the store; it may be missing.
      directory: the local directory.

    Attributes:
      files: sizes of its files by name.
      folders: names of its directories.
    """

    def __init__(self, location: RemotePath, directory: str) -> None:
        self.location, self.directory = location, directory
        entries = [entry for entry in location.backend.entries(location.path) or [] if _is_file_name(entry.relative)]
        self.files = {entry.relative: entry.length for entry in entries if not entry.is_directory}
        # A store can hold a file and a directory of the same name, a disk cannot.
        self.folders = sorted({entry.relative for entry in entries if entry.is_directory} - self.files.keys())

    def refresh(self) -> bool:
        """Lists the store again; true when it changed, and then the local checkpoints are removed.

        A training may be running: it writes new checkpoints and removes old ones while others read them.
        """
        now = RemoteDirectory(self.location, self.directory)
        if now.files == self.files:
            return False
        self.files, self.folders = now.files, now.folders
        for name in os.listdir(self.directory):
            if name == MARKER or name.startswith(PREFIX):
                os.remove(os.path.join(self.directory, name))
        self.fetch_marker()
        return True

    def fetch(self, names: Iterable[str]) -> None:
        """Downloads those of the files that are on the store and not here yet."""
        missing = [
            name for name in names if name in self.files and not os.path.exists(os.path.join(self.directory, name))
        ]
        if not missing:
            return
        if (size := sum(self.files[name] for name in missing)) >= LOGGED_BYTES:
            tf.logging.info("Fetching %.1f MB from %s.", size / 1e6, self.location.url)
        os.makedirs(self.directory, exist_ok=True)
        threads = ThreadPool(PARALLEL_REQUESTS, thread_name_prefix="mox-fetch")
        with transfer_bar(size, "Fetching"), threads as pool:
            list(pool.map(self._fetch_file, missing))

    def _fetch_file(self, name: str) -> None:
        try:
            file.copy(self.location.child(name).url, os.path.join(self.directory, name))
        except MoxFileNotExistsException:
            # Not an error yet: the checkpoint proves incomplete when it is read.
            tf.logging.warning("%s was removed from the store before it was fetched.", self.location.child(name).url)

    def fetch_checkpoint(self, prefix: str) -> None:
        """Downloads the files of a checkpoint."""
        self.fetch(self.files_of(os.path.basename(prefix)))

    def files_of(self, name: str) -> set[str]:
        """The files of a checkpoint: `name.index` and so on, in the V1 format `name` itself."""
        return {found for found in self.files if found == name or found.startswith(name + ".")}

    def fetch_marker(self) -> bool:
        """Downloads the `checkpoint` file; false if there is none.

        Its names are reduced to names in this directory: anyone with access to the bucket could write a path of this
        machine into it, and a run removes the files of old checkpoints.
        """
        self.fetch([MARKER])
        path = os.path.join(self.directory, MARKER)
        if not os.path.exists(path):
            return False
        names = [os.path.basename(prefix) for prefix in reversed(valid_checkpoints(self.directory))]
        if not names:
            # The file is damaged. A checkpoint with an index is complete: the index is uploaded last.
            steps = {name: index_step(name) for name in self.files if index_step(name) is not None}
            names = [name.removesuffix(".index") for name in sorted(steps, key=lambda name: steps[name] or 0)]
        names = [name for name in names if _is_file_name(name)]
        if not names:
            os.remove(path)
            return False
        file.write(path, marker_text(names))
        return True

    def checkpoints(self) -> dict[str, set[str]]:
        """The files of the checkpoints that the local `checkpoint` file names."""
        names = [os.path.basename(prefix) for prefix in valid_checkpoints(self.directory)]
        return {name: self.files_of(name) for name in names}


def index_step(name: str) -> int | None:
    """The step of a checkpoint's index file; None for other files.

    Example:
      >>> index_step('model.ckpt-10.index'), index_step('model.ckpt-10.data-00000-of-00001')
      (10, None)
    """
    match = re.fullmatch(rf"{re.escape(PREFIX)}-(\d+)\.index", name)
    return int(match[1]) if match else None


def _is_file_name(text: str) -> bool:
    """True when a part of a key can be the name of a local file."""
    is_short = len(os.fsencode(text)) <= _LONGEST_NAME
    return text not in (".", "..") and is_short and _NAME.fullmatch(text) is not None

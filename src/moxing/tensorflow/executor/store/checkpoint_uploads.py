"""Uploads checkpoints to a store; the mirror thread calls it.

A checkpoint is valid on the store when the marker (the `checkpoint` file) there names it. Its files come first, then
the marker in one request, then files of checkpoints that the marker no longer names are removed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence

from moxing.tensorflow.executor.checkpoints.files import MARKER, POSITION_SUFFIX, marker_text, valid_checkpoints
from moxing.tensorflow.executor.store.remote_directory import Checkpoints
from moxing.tensorflow.executor.store.uploads import Uploader, Version, is_unreachable, version_of


class CheckpointUploads:
    """Uploads the checkpoints of a directory and of its subdirectories, each with a marker of its own.

    Args:
      directory: the local directory.
      links: another directory on the same disk, for hard links that keep files while they are uploaded.
      uploader: uploads to the directory on the store.
      on_store: checkpoints that are on the store already.
      is_over: returns true when nothing writes into the local directory any more.

    Attributes:
      sent: versions of the files that are on the store, by their paths in the directory.
    """

    def __init__(
        self, directory: str, links: str, uploader: Uploader, on_store: Checkpoints, is_over: Callable[[], bool]
    ) -> None:
        self._directory, self._links, self._uploader = directory, links, uploader
        self._on_store, self._is_over = on_store, is_over
        self.sent: dict[str, Version] = {}

    def upload_next(self, marker: str) -> bool:
        """Uploads the newest checkpoint that is not on the store and marks it valid there; true when one is valid.

        One checkpoint per call: read the local marker again afterwards, newer checkpoints may have been written.

        Args:
          marker: path of the local marker, in the directory.
        """
        folder = os.path.dirname(marker)
        version = version_of(self._local(marker))
        names = self.valid_names(folder)
        on_store = self._on_store.setdefault(folder, {})
        waiting = [name for name in reversed(names) if not self._is_sent(folder, name)]
        failure: Exception | None = None
        for name in waiting:
            if name in on_store:
                self._invalidate(marker, name, [other for other in names if other in on_store and other not in waiting])
            try:
                if not self._send(folder, name, version):
                    return False
            except Exception as error:  # older checkpoints may be small enough or undamaged: try them
                if is_unreachable(error):
                    raise
                failure = failure or error
            if failure is None:
                break
        complete = [name for name in names if self._is_sent(folder, name)]
        if complete and (failure is None or len(complete) > len(names) - len(waiting)):
            self._mark_valid(marker, complete)
            self._remove_all_but(folder, names)
        if failure is not None:
            raise failure
        if complete == names and version is not None:
            self.sent[marker] = version
        return bool(complete)

    def valid_names(self, folder: str) -> list[str]:
        """The checkpoints that the local marker names, oldest first; without those that have no files at all."""
        names = [os.path.basename(prefix) for prefix in reversed(valid_checkpoints(self._local(folder)))]
        on_store = self._on_store.get(folder, {})
        return [name for name in names if name in on_store or self._files(folder, name)]

    def has_new_position(self, relative: str) -> bool:
        """True when a changed file is the JSON of a checkpoint whose other files are on the store.

        Args:
          relative: a file in the directory that has changed.
        """
        folder, entry = os.path.split(relative)
        name = entry.removesuffix(POSITION_SUFFIX)
        if name == entry or name not in self._on_store.get(folder, {}):
            return False
        others = {other: version for other, version in self._files(folder, name).items() if other != entry}
        return all(self.sent.get(os.path.join(folder, other)) == version for other, version in others.items())

    def _mark_valid(self, marker: str, names: Sequence[str]) -> None:
        """Makes checkpoints valid on the store, and no others of the directory: one request."""
        self._uploader.write(marker, marker_text(names))

    def _invalidate(self, marker: str, name: str, others: Sequence[str]) -> None:
        """Takes a checkpoint out of the marker on the store: it is written again under the same name.

        Args:
          marker: path of the marker.
          name: the checkpoint.
          others: the others that are valid; if there are none, a copy of the checkpoint stays valid.
        """
        folder = os.path.dirname(marker)
        self._mark_valid(marker, others or [self._copy_aside(folder, name)])
        self._on_store[folder].pop(name)

    def _copy_aside(self, folder: str, name: str) -> str:
        """Copies a checkpoint on the store and returns the name of the copy."""
        copy = f"{name}-before"
        files = {entry: copy + entry.removeprefix(name) for entry in self._on_store[folder][name]}
        self._uploader.for_each(
            files, lambda entry: self._uploader.copy(os.path.join(folder, entry), os.path.join(folder, files[entry]))
        )
        self._on_store[folder][copy] = set(files.values())
        return copy

    def _remove_all_but(self, folder: str, names: Sequence[str]) -> None:
        """Removes checkpoints from the store, except `names`."""
        on_store = self._on_store[folder]
        for name in [name for name in on_store if name not in names]:
            old = [os.path.join(folder, entry) for entry in sorted(on_store.pop(name))]
            self._uploader.for_each(old, self._uploader.remove)

    def _files(self, folder: str, name: str) -> dict[str, Version]:
        """The local files of a checkpoint."""
        found = {}
        for entry in os.listdir(self._local(folder)):
            version = version_of(self._local(folder, entry)) if entry.startswith(name + ".") else None
            if version is not None:
                found[entry] = version
        return found

    def _is_sent(self, folder: str, name: str) -> bool:
        files = self._files(folder, name)
        if not files:
            return name in self._on_store.get(folder, {})
        return all(self.sent.get(os.path.join(folder, entry)) == version for entry, version in files.items())

    def _send(self, folder: str, name: str, marker: Version | None) -> bool:
        """Uploads the files of a checkpoint, the index last; false if they are being written or removed right now."""
        shutil.rmtree(self._links, ignore_errors=True)
        os.makedirs(self._links)
        try:
            files = self._files(folder, name)
            for entry in files:
                # The training removes old checkpoints and does not wait for uploads.
                _link(self._local(folder, entry), os.path.join(self._links, entry))
            unchanged = files == self._files(folder, name) and marker == version_of(self._local(folder, MARKER))
            # The marker is written after the files: a newer file is being written again. Hooks may update the JSON
            # later.
            newer = marker is not None and any(
                version[2] > marker[2] for entry, version in files.items() if not entry.endswith(POSITION_SUFFIX)
            )
            if not files or not unchanged or (newer and not self._is_over()):
                return False
            index = [entry for entry in files if entry.endswith(".index")]
            for group in ([entry for entry in files if entry not in index], index):
                self._uploader.for_each(group, lambda entry: self._send_file(folder, entry))
            self._on_store[folder][name] = set(files)
            self.sent.update({os.path.join(folder, entry): version for entry, version in files.items()})
            return True
        finally:
            shutil.rmtree(self._links, ignore_errors=True)

    def _send_file(self, folder: str, entry: str) -> None:
        self._uploader.send(os.path.join(self._links, entry), os.path.join(folder, entry))

    def _local(self, *parts: str) -> str:
        return os.path.join(self._directory, *parts)


def _link(path: str, target: str) -> None:
    try:
        os.link(path, target)
    except FileNotFoundError:
        return
    except OSError:  # a file system without hard links
        shutil.copy2(path, target)

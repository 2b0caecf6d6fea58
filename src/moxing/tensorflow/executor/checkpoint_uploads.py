"""Checkpoints on their way to a store.

A checkpoint counts there when the marker names it: its files come first, then the marker in one request, then the files
of checkpoints that it does not name any more are removed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence

from moxing.tensorflow.executor import checkpoint
from moxing.tensorflow.executor.checkpoint import MARKER, POSITION_SUFFIX
from moxing.tensorflow.executor.fetching import Checkpoints
from moxing.tensorflow.executor.uploads import Uploader, Version, is_away, version_of


class CheckpointUploads:
    """Uploads the checkpoints of a directory and of those in it, each with a marker of its own.

    Args:
      directory: the local directory.
      links: another one on the same disk, for files that must stay while they are uploaded.
      uploader: for the directory on the store.
      known: checkpoints that are on the store.
      is_over: says whether nothing is written to the local directory any more.

    Attributes:
      sent: the versions of the files that are on the store, by their paths in the directory.
    """

    def __init__(
        self, directory: str, links: str, uploader: Uploader, known: Checkpoints, is_over: Callable[[], bool]
    ) -> None:
        self._directory, self._links, self._uploader = directory, links, uploader
        self._known, self._is_over = known, is_over
        self.sent: dict[str, Version] = {}

    def commit_next(self, marker: str) -> bool:
        """Uploads the newest checkpoint that is not on the store yet, and has the marker name it; true when it does.

        One at a time, and then the marker is to be read again: while one was on its way, newer ones may have been
        written.

        Args:
          marker: the path of the local marker, in the directory.
        """
        folder = os.path.dirname(marker)
        version = version_of(self._local(marker))
        names = self.names(folder)
        known = self._known.setdefault(folder, {})
        waiting = [name for name in reversed(names) if not self._is_sent(folder, name)]
        failure: Exception | None = None
        for name in waiting:
            if name in known:
                # It is written anew under its name: until it is complete it must not count.
                others = [other for other in names if other in known and other not in waiting]
                self._name(marker, others or [self._copy_aside(folder, name)])
                known.pop(name)
            try:
                if not self._send(folder, name, version):
                    return False
            except Exception as error:  # older ones may get through
                if is_away(error):
                    raise
                failure = failure or error
            if failure is None:
                break
        ready = [name for name in names if self._is_sent(folder, name)]
        if ready and (failure is None or len(ready) > len(names) - len(waiting)):
            self._name(marker, ready)
            for name in [name for name in known if name not in names]:
                old = [os.path.join(folder, entry) for entry in sorted(known.pop(name))]
                self._uploader.for_each(old, self._uploader.remove)
        if failure is not None:
            raise failure
        if ready == names and version is not None:
            self.sent[marker] = version
        return bool(ready)

    def names(self, folder: str) -> list[str]:
        """The checkpoints that the marker here names, oldest first, as far as there is anything of them."""
        names = [os.path.basename(prefix) for prefix in reversed(checkpoint.listed(self._local(folder)))]
        known = self._known.get(folder, {})
        return [name for name in names if name in known or self._files(folder, name)]

    def has_new_position(self, relative: str) -> bool:
        """Whether a file is the JSON of a checkpoint that is on the store in everything else.

        Args:
          relative: a file in the directory that has changed.
        """
        folder, entry = os.path.split(relative)
        name = entry.removesuffix(POSITION_SUFFIX)
        if name == entry or name not in self._known.get(folder, {}):
            return False
        others = {other: version for other, version in self._files(folder, name).items() if other != entry}
        return all(self.sent.get(os.path.join(folder, other)) == version for other, version in others.items())

    def _name(self, marker: str, names: Sequence[str]) -> None:
        self._uploader.write(marker, checkpoint.marker_text(names))

    def _copy_aside(self, folder: str, name: str) -> str:
        """Copies the only checkpoint that counts on the store, and returns the name of the copy."""
        copy = f"{name}-before"
        files = {entry: copy + entry.removeprefix(name) for entry in self._known[folder][name]}
        self._uploader.for_each(
            files, lambda entry: self._uploader.copy(os.path.join(folder, entry), os.path.join(folder, files[entry]))
        )
        self._known[folder][copy] = set(files.values())
        return copy

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
            return name in self._known.get(folder, {})
        return all(self.sent.get(os.path.join(folder, entry)) == version for entry, version in files.items())

    def _send(self, folder: str, name: str, marker: Version | None) -> bool:
        """Uploads the files of a checkpoint, its index last; false if they are just being written or removed."""
        shutil.rmtree(self._links, ignore_errors=True)
        os.makedirs(self._links)
        try:
            files = self._files(folder, name)
            for entry in files:
                # The training removes old checkpoints, and is not to wait for this.
                _link(self._local(folder, entry), os.path.join(self._links, entry))
            same = files == self._files(folder, name) and marker == version_of(self._local(folder, MARKER))
            # The marker is written after the files: one that is newer than it is just being written again. What hooks
            # remember may be added to the JSON later.
            newer = marker is not None and any(
                version[2] > marker[2] for entry, version in files.items() if not entry.endswith(POSITION_SUFFIX)
            )
            if not files or not same or (newer and not self._is_over()):
                return False
            index = [entry for entry in files if entry.endswith(".index")]
            for group in ([entry for entry in files if entry not in index], index):
                self._uploader.for_each(group, lambda entry: self._send_file(folder, entry))
            self._known[folder][name] = set(files)
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
    except OSError:  # a disk without hard links
        shutil.copy2(path, target)

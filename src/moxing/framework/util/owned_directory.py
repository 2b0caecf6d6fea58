"""Temporary directories of one process each; where it was killed, the next one removes what it left."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress

#: The file in the directory that its process holds a lock on.
_OWNER = "owner"
#: Ends the name of a directory that is being removed.
_GONE = "-gone"


class OwnedDirectory:
    """An empty directory for this process. Those of the same `start` whose processes are dead are removed.

    Args:
      above: the directory that it is made in; made if it is missing.
      start: begins its name.

    Attributes:
      path: where it is.

    Example:
      >>> directory = OwnedDirectory(tempfile.gettempdir(), 'example-')
      >>> os.path.isdir(directory.path)
      True
      >>> directory.remove()
      >>> os.path.isdir(directory.path)
      False
    """

    def __init__(self, above: str, start: str) -> None:
        os.makedirs(above, exist_ok=True)
        for path in _own_directories(above, start):
            _remove_if_left(path)
        new = tempfile.mkdtemp(prefix=".moxing-new-", dir=above)
        self._lock = os.open(os.path.join(new, _OWNER), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # It gets its name when it is locked: what has the name and no lock was left behind.
        self.path = os.path.join(above, f"{start}{os.urandom(6).hex()}")
        os.rename(new, self.path)

    @staticmethod
    def left_to_stay(above: str, start: str) -> list[str]:
        """The directories of that kind that no process holds any more, since `leave` was called."""
        found = [path for path in _own_directories(above, start) if not path.endswith(_GONE)]
        return [path for path in found if not os.path.lexists(os.path.join(path, _OWNER))]

    def remove(self) -> None:
        """Removes the directory with all that is in it. What cannot be removed is left to the next process."""
        gone = self.path + _GONE
        try:
            # A thread that is still at work there makes nothing in it any more.
            os.rename(self.path, gone)
        except OSError:
            gone = self.path
        _remove_tree(gone)
        os.close(self._lock)

    def leave(self) -> None:
        """The directory stays: from now on it is nobody's, and no process removes it."""
        os.remove(os.path.join(self.path, _OWNER))
        os.close(self._lock)


def _own_directories(above: str, start: str) -> list[str]:
    """Those in `above` whose names begin so and that are this user's: of others it is not known what is in them."""
    with suppress(FileNotFoundError), os.scandir(above) as entries:
        found = [entry for entry in entries if entry.name.startswith(start) and entry.is_dir(follow_symlinks=False)]
        return sorted(entry.path for entry in found if _is_own(entry.path))
    return []


def _is_own(path: str) -> bool:
    try:
        return os.lstat(path).st_uid == os.getuid()
    except FileNotFoundError:
        return False  # its process has removed it meanwhile


def _remove_if_left(path: str) -> None:
    with suppress(OSError):  # its process lives, or it was left to stay
        lock = os.open(os.path.join(path, _OWNER), os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # It may have been left to stay in between: then this is a lock on a file that is nowhere any more.
            if os.path.samestat(os.fstat(lock), os.stat(os.path.join(path, _OWNER))):
                _remove_tree(path)
        finally:
            os.close(lock)


def _remove_tree(path: str) -> None:
    """Removes what it can, and `owner` with the directory only after all else: by it the next process knows it."""
    with suppress(OSError):
        for name in os.listdir(path):
            below = os.path.join(path, name)
            if os.path.isdir(below) and not os.path.islink(below):
                shutil.rmtree(below, ignore_errors=True)
            elif name != _OWNER:
                with suppress(OSError):
                    os.unlink(below)
        if os.listdir(path) == [_OWNER]:
            shutil.rmtree(path, ignore_errors=True)

"""Temporary directories that belong to one process. The next process removes those of killed processes."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress

#: The file in the directory on which its process holds a lock.
_OWNER = "owner"
#: Suffix of a directory that is being removed.
_REMOVED = "-gone"


class OwnedDirectory:
    """An empty directory for this process. Removes directories of the same prefix whose processes have died.

    Args:
      parent: the directory to create it in; created if it is missing.
      prefix: prefix of its name.

    Attributes:
      path: the path of the directory.

    Example:
      >>> directory = OwnedDirectory(tempfile.gettempdir(), 'example-')
      >>> os.path.isdir(directory.path)
      True
      >>> directory.remove()
      >>> os.path.isdir(directory.path)
      False
    """

    def __init__(self, parent: str, prefix: str) -> None:
        os.makedirs(parent, exist_ok=True)
        for path in _own_directories(parent, prefix):
            _remove_if_abandoned(path)
        new = tempfile.mkdtemp(prefix=".moxing-new-", dir=parent)
        self._lock = os.open(os.path.join(new, _OWNER), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Renamed after locking: a directory of this name without a lock is abandoned.
        self.path = os.path.join(parent, f"{prefix}{os.urandom(6).hex()}")
        os.rename(new, self.path)

    @staticmethod
    def released(parent: str, prefix: str) -> list[str]:
        """Returns the directories of this prefix on which a process has called `release`."""
        found = [path for path in _own_directories(parent, prefix) if not path.endswith(_REMOVED)]
        return [path for path in found if not os.path.lexists(os.path.join(path, _OWNER))]

    def remove(self) -> None:
        """Removes the directory and its contents. The next process removes what cannot be removed now."""
        renamed = self.path + _REMOVED
        try:
            # Threads that still run cannot create files in it any more.
            os.rename(self.path, renamed)
        except OSError:
            renamed = self.path
        _remove_tree(renamed)
        os.close(self._lock)

    def release(self) -> None:
        """Keeps the directory: no process removes it any more."""
        os.remove(os.path.join(self.path, _OWNER))
        os.close(self._lock)


def _own_directories(parent: str, prefix: str) -> list[str]:
    """Returns the directories with this prefix that belong to this user; others are never touched."""
    with suppress(FileNotFoundError), os.scandir(parent) as entries:
        found = [entry for entry in entries if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False)]
        return sorted(entry.path for entry in found if _is_own(entry.path))
    return []


def _is_own(path: str) -> bool:
    try:
        return os.lstat(path).st_uid == os.getuid()
    except FileNotFoundError:
        return False  # its process has just removed it


def _remove_if_abandoned(path: str) -> None:
    with suppress(OSError):  # its process is alive, or has released it
        lock = os.open(os.path.join(path, _OWNER), os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # If it was released in between, the locked file does not exist any more.
            if os.path.samestat(os.fstat(lock), os.stat(os.path.join(path, _OWNER))):
                _remove_tree(path)
        finally:
            os.close(lock)


def _remove_tree(path: str) -> None:
    """Removes what it can; `owner` comes last, since the next process recognizes the directory by it."""
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

"""One training per directory: the process that writes checkpoints locks it. Other processes only read."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import tensorflow.compat.v1 as tf

#: The file that is locked. It says who trains in the directory, and is removed at the end.
LOCK = ".moxing-lock"
#: A restarted job may start while the old process is still saving.
_PATIENCE_SECONDS = 20.0
_POLL_SECONDS = 0.2
#: Errors of file systems that have no locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
_held: set[int] = set()


class LogDirInUseError(RuntimeError):
    """Another process trains in the directory.

    Example:
      >>> issubclass(LogDirInUseError, RuntimeError)
      True
    """


@contextmanager
def train_in(directory: str, argument: str = "log_dir") -> Iterator[None]:
    """Creates a directory and locks it for the training of this process.

    The lock ends with the process, however it ends. A second process waits a little, for one that is just ending.

    Args:
      directory: the directory.
      argument: its name in messages.

    Raises:
      LogDirInUseError: another process has locked it. The message says which.
      OSError: the directory cannot be created or written.
    """
    make_directory(directory, argument)
    lock = _acquire(directory, argument)
    try:
        yield
    finally:
        if lock is not None:
            path = os.path.join(directory, LOCK)
            with suppress(OSError):  # the directory may be gone
                if _is_at(lock, path):
                    os.remove(path)
            _held.discard(lock)
            os.close(lock)


def make_directory(directory: str, argument: str) -> None:
    """Creates a directory; an error names the argument.

    Example:
      >>> make_directory('/proc/version', 'log_dir')
      Traceback (most recent call last):
      ...
      NotADirectoryError: [Errno 20] log_dir: a file has this name, give a directory: '/proc/version'
    """
    if os.path.islink(directory) and not os.path.exists(directory):
        target = os.path.realpath(directory)
        raise FileNotFoundError(errno.ENOENT, f"{argument}: a link to {target!r}, which does not exist", directory)
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise NotADirectoryError(errno.ENOTDIR, f"{argument}: a file has this name, give a directory", directory)
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise _named(error, argument, directory, "cannot be created") from None


def _named(error: OSError, argument: str, directory: str, what: str) -> OSError:
    reason = (error.strerror or str(error)).lower()
    return type(error)(error.errno, f"{argument}: {what}: {reason}", directory)


def _acquire(directory: str, argument: str) -> int | None:
    """Returns the descriptor of the lock; None on a file system without locks."""
    until, waits = time.monotonic() + _PATIENCE_SECONDS, False
    path = os.path.join(directory, LOCK)
    while True:
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise _named(error, argument, directory, "cannot be written") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The process before may have removed the file after it was opened here.
            if _is_at(lock, path):
                _held.add(lock)
                os.truncate(lock, 0)
                os.pwrite(lock, json.dumps(_own()).encode(), 0)
                return lock
        except BlockingIOError:
            if time.monotonic() >= until:
                holder = _holder(lock)
                os.close(lock)
                raise LogDirInUseError(
                    f"{argument}={directory!r} is in use: {holder} trains there. Two trainings in one directory "
                    f"overwrite each other's checkpoints: give another {argument}, or end that process first."
                ) from None
            if not waits:
                waits = True
                tf.logging.warning("%s=%r is in use by %s; waiting for its end.", argument, directory, _holder(lock))
            time.sleep(_POLL_SECONDS)
        except OSError as error:
            os.close(lock)
            if error.errno in _NO_LOCKS:
                tf.logging.debug("%s: the file system has no locks (%s).", directory, error.strerror)
                with suppress(OSError):
                    os.remove(path)
                return None
            raise _named(error, argument, directory, "cannot be locked") from None
        os.close(lock)


def _is_at(lock: int, path: str) -> bool:
    return os.path.lexists(path) and os.path.samestat(os.fstat(lock), os.lstat(path))


def _own() -> dict[str, object]:
    return {"host": socket.gethostname(), "pid": os.getpid(), "started": time.strftime("%Y-%m-%d %H:%M:%S")}


def _holder(lock: int) -> str:
    try:
        content = json.loads(os.pread(lock, 4096, 0))
        return f"process {content['pid']} on {content['host']}, started {content['started']},"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _forget() -> None:
    """A child of a fork must not hold the lock of a process that has ended."""
    while _held:
        with suppress(OSError):
            os.close(_held.pop())


os.register_at_fork(after_in_child=_forget)

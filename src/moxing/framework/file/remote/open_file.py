"""Opens remote files: the layers of Python's `io` on top of what a backend reads and writes."""

from __future__ import annotations

import atexit
import io
import weakref
from contextlib import suppress
from typing import Any

from moxing.framework.file.errors import is_a_directory, not_exists
from moxing.framework.file.urls import RemotePath

_WRITE_BUFFER = 1 << 20
_READ_BUFFER = 64 << 10

_open_writers: weakref.WeakSet[Any] = weakref.WeakSet()


def open_remote(remote: RemotePath, mode: str, argument: str, **text: str | None) -> tuple[Any, Any]:
    """Opens a remote file.

    Args:
      remote: The file.
      mode: The mode in its usual spelling.
      argument: The name of the caller's argument.
      **text: encoding, errors and newline of a text file.

    Returns:
      The stream, and the raw file below it, which has `length()` and, if it can be written, `abort()`.
    """
    raw, stream = _open_binary(remote, mode, argument)
    if "b" not in mode:
        stream = io.TextIOWrapper(stream, **text)  # type: ignore[arg-type]
    if mode != "r" and mode != "rb":
        _open_writers.add(stream)
    return stream, raw


def _open_binary(remote: RemotePath, mode: str, argument: str) -> tuple[Any, Any]:
    backend, path, url = remote
    kind = mode.replace("b", "")
    if kind != "r" and path.endswith("/"):
        raise is_a_directory(argument, url, "give the path of a file")
    if kind == "r":
        reader = backend.open_reader(path)
        if reader is None:
            raise missing_file(remote, argument)
        return reader, io.BufferedReader(reader, _READ_BUFFER)
    if backend.has_real_directories and backend.is_directory(path):
        raise is_a_directory(argument, url, "give the path of a file")
    if kind == "w":
        writer = backend.open_writer(path)
        return writer, io.BufferedWriter(writer, _WRITE_BUFFER)
    from moxing.framework.file.remote.local_copy import LocalCopy

    try:
        copy = LocalCopy(mode, backend, path, lambda target: backend.download(path, target))
    except FileNotFoundError:
        raise missing_file(remote, argument) from None
    return copy, io.BufferedWriter(copy) if kind == "a" else io.BufferedRandom(copy)


def missing_file(remote: RemotePath, argument: str) -> OSError:
    """Returns the exception for a path that is not a file: it is a directory, or does not exist."""
    if remote.backend.is_directory(remote.path):
        return is_a_directory(argument, remote.url, "give the path of a file")
    return not_exists(argument, remote.url, "no such file")


@atexit.register
def _close_open_files() -> None:
    """Closes files that a script never closed, as Python does for local files."""
    for stream in list(_open_writers):
        with suppress(ValueError):
            stream.close()

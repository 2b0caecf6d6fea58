"""File objects of backends: the layers of Python's own `io` above what a backend reads and writes."""

from __future__ import annotations

import atexit
import io
import weakref
from contextlib import suppress
from typing import Any

from moxing.framework.file.backends import Place
from moxing.framework.file.errors import is_a_directory, not_exists

_WRITE_BUFFER = 1 << 20
_READ_BUFFER = 64 << 10

_open_writers: weakref.WeakSet[Any] = weakref.WeakSet()


def open_place(place: Place, mode: str, argument: str, **text: str | None) -> tuple[Any, Any]:
    """Opens a file of a backend.

    Args:
      place: The file.
      mode: In its usual spelling.
      argument: The caller's argument that names the file.
      **text: encoding, errors and newline of a text file.

    Returns:
      The stream, and the raw file below it, which has `length()` and, if it can be written, `abort()`.
    """
    raw, stream = _open_binary(place, mode, argument)
    if "b" not in mode:
        stream = io.TextIOWrapper(stream, **text)  # type: ignore[arg-type]
    if mode != "r" and mode != "rb":
        _open_writers.add(stream)
    return stream, raw


def _open_binary(place: Place, mode: str, argument: str) -> tuple[Any, Any]:
    backend, path, url = place
    kind = mode.replace("b", "")
    if kind != "r" and path.endswith("/"):
        raise is_a_directory(argument, url, "give the path of a file")
    if kind == "r":
        reader = backend.open_reader(path)
        if reader is None:
            raise missing_file(place, argument)
        return reader, io.BufferedReader(reader, _READ_BUFFER)
    if backend.has_real_directories and backend.is_directory(path):
        raise is_a_directory(argument, url, "give the path of a file")
    if kind == "w":
        writer = backend.open_writer(path)
        return writer, io.BufferedWriter(writer, _WRITE_BUFFER)
    from moxing.framework.file.remote_writing import LocalCopy

    try:
        copy = LocalCopy(mode, backend, path, lambda target: backend.download(path, target))
    except FileNotFoundError:
        raise missing_file(place, argument) from None
    return copy, io.BufferedWriter(copy) if kind == "a" else io.BufferedRandom(copy)


def missing_file(place: Place, argument: str) -> OSError:
    """The exception where a file was expected: it is a directory, or there is nothing."""
    if place.backend.is_directory(place.path):
        return is_a_directory(argument, place.url, "give the path of a file")
    return not_exists(argument, place.url, "no such file")


@atexit.register
def _close_open_files() -> None:
    """A script that never closes its files has them written by Python when it ends; so it is here."""
    for stream in list(_open_writers):
        with suppress(ValueError):
            stream.close()

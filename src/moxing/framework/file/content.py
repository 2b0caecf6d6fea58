"""Reads, writes and appends whole files."""

from __future__ import annotations

import os
from typing import IO, Any

from moxing.framework.file.atomic_write import replace_file
from moxing.framework.file.errors import MoxFileReadException
from moxing.framework.file.file_object import File, open_stream
from moxing.framework.file.urls import RemotePath, Url, find_remote, local_path

_CHUNK = 1 << 20


def read(url: Url, client_id: str | None = None, binary: bool = False, exist_check: bool = True) -> Any:
    """Reads a whole file: text as UTF-8, or bytes.

    Args:
      url: A path or url.
      client_id: No effect: all calls share the connections to an object store.
      binary: True for bytes, False for text.
      exist_check: No effect: a missing file is always an error.

    Returns:
      A str, or bytes if `binary`.

    Raises:
      MoxFileNotExistsException: The file does not exist.
      MoxFileReadException: The file exists, but its content could not be read.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.write(folder + '/a.txt', 'hello')
      ...     mox.file.read(folder + '/a.txt')
      'hello'
    """
    if remote := find_remote(url, "url"):
        return _read_remote(remote, binary)
    path = local_path(url, "url")
    text = {} if binary else {"encoding": "utf-8"}
    with open_stream(path, "rb" if binary else "r", "url", **text) as stream:
        try:
            return stream.read()
        except UnicodeDecodeError as error:
            error.add_note(f"url={path!r} is not UTF-8 text: read it with binary=True.")
            raise
        except OSError as error:
            raise MoxFileReadException(None, error.errno, f"url: {error.strerror}", path) from error


def _read_remote(remote: RemotePath, binary: bool) -> Any:
    content = remote.backend.read(remote.path)
    if content is None:
        from moxing.framework.file.remote.open_file import missing_file

        raise missing_file(remote, "url")
    if binary:
        return bytes(content)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        error.add_note(f"url={remote.url!r} is not UTF-8 text: read it with binary=True.")
        raise
    # Universal newlines, as in a text file.
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def write(url: Url, data: Any, binary: bool = False) -> None:
    """Writes a whole file, replacing an existing one. A reader sees the old content or the new, never a part.

    Args:
      url: A path or url. The directory of a local file must exist.
      data: A str, written as UTF-8, or bytes if `binary`.
      binary: Whether `data` is bytes.

    Raises:
      TypeError: `data` is bytes without `binary`, or text with it.
      MoxFileNotExistsException: The directory of the file does not exist.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.write(folder + '/a.bin', b'01', binary=True)
      ...     mox.file.get_size(folder + '/a.bin')
      2
    """
    if remote := find_remote(url, "url"):
        remote.backend.write(remote.path, _encode(data, binary))
        return
    path = local_path(url, "url")
    content = _encode(data, binary)
    replace_file(path, "url", lambda stream: stream.write(content))


def append(url: Url, data: Any, binary: bool = False) -> None:
    """Appends to a file. A missing file is created.

    An object store cannot extend an object: the content is read and written again. If two processes append to one
    object at the same time, one change may be lost.

    Args:
      url: A path or url.
      data: A str, written as UTF-8, or bytes if `binary`.
      binary: Whether `data` is bytes.

    Raises:
      TypeError: `data` is bytes without `binary`, or text with it.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.append(folder + '/log.txt', 'one ')
      ...     mox.file.append(folder + '/log.txt', 'two')
      ...     mox.file.read(folder + '/log.txt')
      'one two'
    """
    if remote := find_remote(url, "url"):
        more = _encode(data, binary)
        before = remote.backend.read(remote.path)
        remote.backend.write(remote.path, bytes(before or b"") + more)
        return
    path = local_path(url, "url")
    content = _encode(data, binary)
    with open_stream(path, "ab", "url") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def append_remote(src_url: Url, dst_url: Url) -> None:
    """Appends the content of one file to another. A missing target is created.

    Args:
      src_url: The file to read, a path or url.
      dst_url: The file to extend.

    Raises:
      MoxFileNotExistsException: `src_url` does not exist.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.write(folder + '/a', 'a')
      ...     mox.file.write(folder + '/b', 'b')
      ...     mox.file.append_remote(folder + '/a', folder + '/b')
      ...     mox.file.read(folder + '/b')
      'ba'
    """
    if find_remote(dst_url, "dst_url"):
        with (
            File._open_as("src_url", src_url, "rb") as stored,
            File._open_as("dst_url", dst_url, "ab") as extended,
        ):
            copy_stream(stored, extended, stored.size())  # type: ignore[arg-type]
        return
    if find_remote(src_url, "src_url"):
        import tempfile

        local_path(dst_url, "dst_url")
        # Download all of it first: after a lost connection, a part would stay in the file.
        with tempfile.TemporaryFile(prefix="mox-") as buffer:
            with File._open_as("src_url", src_url, "rb") as stored:
                copy_stream(stored, buffer, stored.size())  # type: ignore[arg-type]
            buffer.seek(0)
            with File._open_as("dst_url", dst_url, "ab") as extended:
                copy_stream(buffer, extended)  # type: ignore[arg-type]
        return
    src, dst = local_path(src_url, "src_url"), local_path(dst_url, "dst_url")
    with open_stream(src, "rb", "src_url") as source, open_stream(dst, "ab", "dst_url") as target:
        # Read the size first: a file that is appended to itself would never end.
        copy_stream(source, target, os.fstat(source.fileno()).st_size)
        target.flush()
        os.fsync(target.fileno())


def _encode(data: Any, binary: bool) -> bytes:
    """Returns the bytes to write. Called before the file is opened, so that invalid data changes nothing."""
    if not binary:
        if not isinstance(data, str):
            raise TypeError(f"data is {type(data).__name__}: expected str, or binary=True for bytes.")
        return data.encode("utf-8")
    if isinstance(data, str):
        raise TypeError("data is str: expected bytes with binary=True; text is written with binary=False.")
    if isinstance(data, bytes):
        return data
    try:
        return memoryview(data).tobytes()
    except TypeError:
        raise TypeError(f"data is {type(data).__name__}: expected bytes with binary=True.") from None


def copy_stream(source: IO[bytes], target: IO[bytes], count: int | None = None) -> None:
    """Copies `count` bytes of an open file, by default all that are left.

    Example:
      >>> import io
      >>> target = io.BytesIO()
      >>> copy_stream(io.BytesIO(b'abc'), target, 2)
      >>> target.getvalue()
      b'ab'
    """
    while chunk := source.read(_CHUNK if count is None else min(count, _CHUNK)):
        target.write(chunk)
        if count is not None:
            count -= len(chunk)

"""`mox.file.File`: a file object like that of `open`, for every URL that `mox.file` accepts."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import IO, Any

from moxing.framework.file.errors import is_a_directory, not_exists
from moxing.framework.file.urls import Url, resolve

MODES = ("r", "w", "a", "r+", "w+", "a+", "rb", "wb", "ab", "rb+", "wb+", "ab+")


def normalize_mode(mode: str) -> str:
    """Returns the usual spelling of a mode, in any order of its letters. An unknown mode is a ValueError.

    Example:
      >>> normalize_mode('br'), normalize_mode('r+b'), normalize_mode('rt')
      ('rb', 'rb+', 'r')
    """
    if isinstance(mode, str):
        # 't' means text, which contradicts 'b'.
        letters = mode.replace("t", "", 1) if "b" not in mode else mode
        for known in MODES:
            if sorted(known) == sorted(letters):
                return known
    raise ValueError(f"mode={mode!r}: expected one of {', '.join(MODES)}; b may also come first, as in 'br+'.")


def open_stream(path: str, mode: str, argument: str, **text: str | None) -> IO[Any]:
    """Opens a local path. Errors name the caller's argument.

    Example:
      >>> open_stream('/no/such/file', 'rb', 'src_url')
      Traceback (most recent call last):
      ...
      moxing.framework.file.errors.MoxFileNotExistsException: [Errno 2] src_url: no such file: '/no/such/file'
    """
    try:
        return open(path, mode, **text)  # type: ignore[call-overload]
    except IsADirectoryError:
        raise is_a_directory(argument, path, "give the path of a file") from None
    except FileNotFoundError:
        advice = "no such file"
        if normalize_mode(mode)[0] != "r":
            advice = "its directory does not exist, mox.file.make_dirs creates it"
        raise not_exists(argument, path, advice) from None


class File:
    """An open file with the methods of Python's file objects. Text is UTF-8, whatever the locale.

    A file of an object store is read in ranges. What is written appears when the file is closed: as new content in the
    modes w, as the old content with the changes in the others. An exception inside a `with` block discards the changes.

    Args:
      name: A path or url.
      mode: One of r, w, a, r+, w+, a+; with a b at any position the file is binary.
      encoding: As in `open`. By default UTF-8. (Not in the original MoXing.)
      errors: As in `open`. (Not in the original MoXing.)
      newline: As in `open`. (Not in the original MoXing.)

    Raises:
      ValueError: The mode is unknown.
      MoxFileNotExistsException: The file (to read) or its directory (to write) does not exist.
      UnsupportedSchemeError: No backend serves the scheme of `name`.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     with mox.file.File(folder + '/a.txt', 'w') as f:
      ...         f.writelines(['one\\n', 'two\\n'])
      ...     with mox.file.File(folder + '/a.txt') as f:
      ...         [line.strip() for line in f]
      ['one', 'two']
    """

    def __init__(
        self,
        name: Url,
        mode: str = "r",
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> None:
        self._open(name, mode, "name", encoding, errors, newline)

    @classmethod
    def _open_as(cls, argument: str, name: Url, mode: str) -> File:
        """Opens a file whose errors name the caller's argument."""
        file = cls.__new__(cls)
        file._open(name, mode, argument, None, None, None)
        return file

    def _open(
        self, name: Url, mode: str, argument: str, encoding: str | None, errors: str | None, newline: str | None
    ) -> None:
        self._mode = normalize_mode(mode)
        location = resolve(name, argument)
        self._name = os.fsdecode(name)
        if "b" not in self._mode:
            encoding = encoding or "utf-8"
        text = {"encoding": encoding, "errors": errors, "newline": newline}
        self._stream: Any
        self._remote: Any = None
        if isinstance(location, str):
            self._stream = open_stream(location, self._mode, argument, **text)
        else:
            from moxing.framework.file.remote.open_file import open_remote

            self._stream, self._remote = open_remote(location, self._mode, argument, **text)

    @property
    def name(self) -> str:
        """The name that the file was opened with."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode in its usual spelling, such as 'rb' for 'br'."""
        return self._mode

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return bool(self._stream.closed)

    def read(self, n: int | None = -1) -> Any:
        """Reads `n` characters (bytes of a binary file), by default the rest of the file."""
        return self._stream.read(n)

    def readline(self, size: int = -1) -> Any:
        """Reads a line with its newline, at most `size` characters of it; empty at the end of the file."""
        return self._stream.readline(size)

    def readlines(self, sizeint: int = -1) -> list[Any]:
        """Reads the lines that are left, or as many as reach `sizeint` characters together."""
        return list(self._stream.readlines(sizeint))

    def next(self) -> Any:
        """The next line, as Python 2 scripts ask for it; StopIteration at the end."""
        return next(self._stream)

    def write(self, data: Any) -> int:
        """Writes text, or bytes to a binary file, and returns how many."""
        return int(self._stream.write(data))

    def writelines(self, sequence: Iterable[Any]) -> None:
        """Writes all strings of a sequence, without adding newlines."""
        self._stream.writelines(sequence)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Moves to `offset` from the start (whence 0), the position (1) or the end (2)."""
        return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        """The position in the file."""
        return int(self._stream.tell())

    def size(self) -> int:
        """Returns the size of the file in bytes, including everything written so far."""
        if self._stream.writable():
            self._stream.flush()
        if self._remote is not None:
            return int(self._remote.length())
        return os.fstat(self._stream.fileno()).st_size

    def flush(self) -> None:
        """Flushes buffers to the operating system. The content of a URL appears when the file is closed."""
        self._stream.flush()

    def close(self) -> None:
        """Closes the file. Closing it again does nothing."""
        self._stream.close()

    def fileno(self) -> int:
        """Returns the file descriptor. A URL has none and raises io.UnsupportedOperation."""
        try:
            return int(self._stream.fileno())
        except io.UnsupportedOperation:
            raise io.UnsupportedOperation(
                f"{self._name!r}: a file of a store has no descriptor, which mmap and np.fromfile need; copy it to the "
                "disk first, with mox.file.copy."
            ) from None

    def isatty(self) -> bool:
        """Returns whether the file is a terminal."""
        return bool(self._stream.isatty())

    def readable(self) -> bool:
        """Returns whether the mode allows reading."""
        return bool(self._stream.readable())

    def writable(self) -> bool:
        """Returns whether the mode allows writing."""
        return bool(self._stream.writable())

    def seekable(self) -> bool:
        """Returns whether `seek` works; it does not on a pipe or terminal."""
        return bool(self._stream.seekable())

    def __getattr__(self, attribute: str) -> Any:
        # truncate, readinto, read1, buffer, encoding and others, if the file has them.
        if attribute in ("_stream", "_remote"):
            raise AttributeError(attribute)
        return getattr(self._stream, attribute)

    def __iter__(self) -> Iterator[Any]:
        iter(self._stream)  # Raises for a closed file, as Python's own file objects do.
        return self

    def __next__(self) -> Any:
        return next(self._stream)

    def __enter__(self) -> File:
        self._stream.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None and self._remote is not None and not self.closed and self._stream.writable():
            self._remote.abort()
        self.close()

    def __repr__(self) -> str:
        return f"File({self._name!r}, {self._mode!r})"


# Libraries use isinstance(x, io.IOBase) to distinguish a file object from a path.
io.IOBase.register(File)

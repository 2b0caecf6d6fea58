"""File objects of TensorFlow that read and write the urls of `mox.file`."""

from __future__ import annotations

from typing import Any

from moxing.framework import file
from moxing.tf1.files.dispatch import is_remote, with_tensorflow_errors


class UrlFile:
    """A mixin for TensorFlow's file classes: reads and writes urls through `mox.file`.

    TensorFlow's methods stay, only the two streams behind them change. What is written appears when the file is closed.
    """

    name: Any
    mode: str
    _read_buf: Any
    _writable_file: Any
    _read_check_passed: bool
    _write_check_passed: bool

    def _preread_check(self) -> None:
        if self._read_buf or not self._read_check_passed or not is_remote(self.name):
            super()._preread_check()  # type: ignore[misc]
            return
        self._read_buf = _Stream(with_tensorflow_errors(file.File)(self.name, "rb"))

    def _prewrite_check(self) -> None:
        if self._writable_file or not self._write_check_passed or not is_remote(self.name):
            super()._prewrite_check()  # type: ignore[misc]
            return
        mode = self.mode.replace("b", "") + "b"
        self._writable_file = _WritableFile(with_tensorflow_errors(file.File)(self.name, mode))

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is not None and isinstance(self._writable_file, _WritableFile):
            # As with every file of `mox.file`, a block that fails leaves no half of a file.
            self._writable_file.abort(kind, error, traceback)
            self._writable_file = None
        super().__exit__(kind, error, traceback)  # type: ignore[misc]

    def _prepare_value(self, value: Any) -> Any:
        try:
            return super()._prepare_value(value)  # type: ignore[misc]
        except UnicodeDecodeError:
            # In Python 2 the mode "r" read images and graphs too.
            return value

    def size(self) -> int:
        """Returns the size of the file in bytes, including what was written so far."""
        if isinstance(self._writable_file, _WritableFile):
            return int(self._writable_file.size())
        if is_remote(self.name):
            return int(with_tensorflow_errors(file.stat)(self.name).length)
        return int(super().size())  # type: ignore[misc]


class _Stream:
    """A file of `mox.file` with the errors of TensorFlow."""

    def __init__(self, stream: file.File) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return with_tensorflow_errors(getattr(self._stream, name))


class _WritableFile(_Stream):
    """The same with the method names of TensorFlow's WritableFile."""

    def append(self, content: bytes) -> None:
        self.write(content)

    def abort(self, kind: Any, error: Any, traceback: Any) -> None:
        self._stream.__exit__(kind, error, traceback)

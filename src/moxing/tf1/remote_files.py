"""TensorFlow's file functions for urls that TensorFlow does not know: `mox.file` behind them, TensorFlow's errors.

A local path, and a url that TensorFlow serves itself, goes to TensorFlow's own function.
"""

from __future__ import annotations

import functools
import inspect
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.lib.io import file_io as _real

from moxing.framework import file
from moxing.framework.file.entries import FileStatistics
from moxing.framework.file.paths import get_scheme


def is_remote(path: Any) -> bool:
    """Whether a path is a url that is served by `mox.file` and not by TensorFlow.

    Example:
      >>> is_remote('s3://bucket/a'), is_remote('/data/a'), is_remote('ram://a'), is_remote(True)
      (True, False, False, False)
    """
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    text = os.fsdecode(path)
    scheme = get_scheme(text) if "://" in text else None
    return scheme is not None and scheme not in _schemes()


@functools.cache
def _schemes() -> frozenset[str]:
    return frozenset(_real.get_registered_schemes())


def either(real: Callable[..., Any], remote: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is `remote` where one of its arguments is a url of `mox.file`, and else `real`.

    Args:
      real: TensorFlow's function.
      remote: takes the same arguments, at the same places.

    Example:
      >>> exists = either(tf.gfile.Exists, lambda filename: True)
      >>> exists('/no/such/file'), exists('s3://bucket/a')
      (False, True)
    """
    own = _with_tensorflow_errors(remote)

    @functools.wraps(real)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(map(is_remote, args)) or any(map(is_remote, kwargs.values())):
            # By their places: the names differ between the versions of TensorFlow's API.
            given = inspect.signature(real).bind(*args, **kwargs)
            given.apply_defaults()
            return own(*given.args)
        return real(*args, **kwargs)

    return call


def _with_tensorflow_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (OSError, ValueError) as error:
            raise tensorflow_error(error) from error

    return call


def tensorflow_error(error: Exception) -> Exception:
    """The error of TensorFlow that scripts expect in place of one of `mox.file`.

    Example:
      >>> type(tensorflow_error(FileNotFoundError(2, 'no such file', 's3://bucket/a'))).__name__
      'NotFoundError'
    """
    status = getattr(getattr(error, "resp", None), "status", None)
    kinds: list[tuple[Any, type[tf.errors.OpError]]] = [
        (FileNotFoundError, tf.errors.NotFoundError),
        (FileExistsError, tf.errors.AlreadyExistsError),
        (IsADirectoryError, tf.errors.FailedPreconditionError),
        (NotADirectoryError, tf.errors.FailedPreconditionError),
        (PermissionError, tf.errors.PermissionDeniedError),
        (ValueError, tf.errors.InvalidArgumentError),
    ]
    kind = next((ours for theirs, ours in kinds if isinstance(error, theirs)), tf.errors.UnknownError)
    if status in (401, 403):
        kind = tf.errors.PermissionDeniedError
    elif status == 0 or (isinstance(status, int) and status >= 500):
        kind = tf.errors.UnavailableError
    return kind(None, None, str(error))


def serve_checkpoint_functions() -> None:
    """From now on `tf.train.latest_checkpoint` and its neighbours find checkpoints on the stores of `mox.file`."""
    from tensorflow.python.checkpoint import checkpoint_management

    from moxing.tf1 import file_io

    checkpoint_management.file_io = file_io


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """`tf.gfile.Copy`."""
    _check_free(dst, overwrite)
    file.copy(src, dst)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """`tf.gfile.Rename`."""
    _check_free(dst, overwrite)
    file.rename(src, dst)


def _check_free(path: Any, overwrite: bool) -> None:
    if not overwrite and file.exists(path):
        raise FileExistsError(17, "the file already exists, and overwrite=False", os.fsdecode(path))


def remove(path: Any) -> None:
    """`tf.gfile.Remove`: a file."""
    if file.stat(path).is_directory:
        raise IsADirectoryError(21, "a directory, tf.gfile.DeleteRecursively removes one", os.fsdecode(path))
    file.remove(path)


def rmtree(path: Any) -> None:
    """`tf.gfile.DeleteRecursively`."""
    file.remove(path, recursive=True)


def glob(pattern: Any) -> list[str]:
    """`tf.gfile.Glob`."""
    return sorted(file.glob(os.fsdecode(pattern)))


def glob_all(patterns: Any) -> list[str]:
    """`tf.gfile.Glob`, which also takes a list of patterns.

    Example:
      >>> glob_all(['/no/such/a*', '/no/such/b'])
      []
    """
    if isinstance(patterns, str | bytes | os.PathLike):
        patterns = [patterns]
    own = _with_tensorflow_errors(glob)
    return [path for one in patterns for path in (own(one) if is_remote(one) else _real.get_matching_files(one))]


def listdir(path: Any) -> list[str]:
    """`tf.gfile.ListDirectory`."""
    return list(file.list_directory(path))


def makedirs(path: Any) -> None:
    """`tf.gfile.MakeDirs`."""
    file.make_dirs(path)


def mkdir(path: Any) -> None:
    """`tf.gfile.MkDir`; one that is there already is no error, as with a local one."""
    if not file.is_directory(path):
        file.mk_dir(path)


def exists(path: Any) -> bool:
    """`tf.gfile.Exists`."""
    return file.exists(path)


def isdir(path: Any) -> bool:
    """`tf.gfile.IsDirectory`."""
    return file.is_directory(path)


def stat(path: Any) -> FileStatistics:
    """`tf.gfile.Stat`."""
    return file.stat(path)


def walk(top: Any, topdown: bool = True, onerror: Any = None) -> Iterator[tuple[str, list[str], list[str]]]:
    """`tf.gfile.Walk` and `tf.io.gfile.walk`: what is no directory has nothing in it, other errors are raised."""

    def report(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise error
        if onerror is not None:
            onerror(tensorflow_error(error))

    # Step by step: a caller may take directories out of the list before they are gone through.
    walked = _with_tensorflow_errors(file.walk)(top, topdown, report)
    step = _with_tensorflow_errors(next)
    while (found := step(walked, None)) is not None:
        yield found


def read_text(path: Any, binary_mode: bool = False) -> Any:
    """`file_io.read_file_to_string`."""
    return file.read(path, binary=binary_mode)


def write_text(path: Any, content: str | bytes) -> None:
    """`file_io.write_string_to_file`."""
    file.write(path, content.encode() if isinstance(content, str) else content, binary=True)


def write_new(path: Any, content: str | bytes, overwrite: bool = True) -> None:
    """`file_io.atomic_write_string_to_file`; every file of a store appears as a whole."""
    _check_free(path, overwrite)
    write_text(path, content)


def has_atomic_move(path: Any) -> bool:
    """`file_io.has_atomic_move`: on a store, to rename is to copy and to remove.

    Example:
      >>> has_atomic_move('s3://bucket/a')
      False
    """
    return False


def crc32(path: Any, block_size: int = 16 << 20) -> str:
    """`file_io.file_crc32`."""
    value = 0
    with file.File(path, "rb") as stream:
        while chunk := stream.read(block_size):
            value = zlib.crc32(chunk, value)
    return hex(value)


def is_same(first: Any, second: Any) -> bool:
    """`file_io.filecmp`."""
    return file.stat(first).length == file.stat(second).length and crc32(first) == crc32(second)


class RemoteAware:
    """For a class of TensorFlow's file objects: what it reads and writes of urls goes through `mox.file`.

    TensorFlow's own methods stay: only the two streams behind them are others. What was written is there when the file
    is closed.
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
        self._read_buf = _Reader(_with_tensorflow_errors(file.File)(self.name, "rb"))

    def _prewrite_check(self) -> None:
        if self._writable_file or not self._write_check_passed or not is_remote(self.name):
            super()._prewrite_check()  # type: ignore[misc]
            return
        mode = self.mode.replace("b", "") + "b"
        self._writable_file = _Writer(_with_tensorflow_errors(file.File)(self.name, mode))

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is not None and isinstance(self._writable_file, _Writer):
            # As with every file of `mox.file`: a block that failed leaves no half of it.
            self._writable_file.give_up(kind, error, traceback)
            self._writable_file = None
        super().__exit__(kind, error, traceback)  # type: ignore[misc]

    def size(self) -> int:
        """The size of the file in bytes, with what was written so far."""
        if isinstance(self._writable_file, _Writer):
            return int(self._writable_file.size())
        if is_remote(self.name):
            return int(_with_tensorflow_errors(file.stat)(self.name).length)
        return int(super().size())  # type: ignore[misc]


class _Stream:
    def __init__(self, stream: file.File) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return _with_tensorflow_errors(getattr(self._stream, name))


class _Reader(_Stream):
    """`read`, `readline`, `seek` and `tell` are those of the file."""


class _Writer(_Stream):
    """The names of a WritableFile."""

    def append(self, content: bytes) -> None:
        self.write(content)

    def give_up(self, kind: Any, error: Any, traceback: Any) -> None:
        self._stream.__exit__(kind, error, traceback)

"""TensorFlow's file functions on urls of `mox.file`, with the parameters of TensorFlow."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import Any

from tensorflow.python.lib.io import file_io

from moxing.framework import file
from moxing.framework.file.entries import FileStatistics
from moxing.tf1.files.dispatch import is_remote, tensorflow_error, with_tensorflow_errors


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
        raise FileExistsError(17, "the file exists and overwrite is False", os.fsdecode(path))


def remove(path: Any) -> None:
    """`tf.gfile.Remove`: a file."""
    if file.stat(path).is_directory:
        raise IsADirectoryError(21, "is a directory; use tf.gfile.DeleteRecursively", os.fsdecode(path))
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
    remote_glob = with_tensorflow_errors(glob)
    found = [remote_glob(one) if is_remote(one) else file_io.get_matching_files(one) for one in patterns]
    return [path for paths in found for path in paths]


def listdir(path: Any) -> list[str]:
    """`tf.gfile.ListDirectory`."""
    return list(file.list_directory(path))


def makedirs(path: Any) -> None:
    """`tf.gfile.MakeDirs`."""
    file.make_dirs(path)


def mkdir(path: Any) -> None:
    """`tf.gfile.MkDir`. As for a local path, an existing directory is not an error."""
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
    """`tf.gfile.Walk` and `tf.io.gfile.walk`. A missing directory is empty; other errors are raised."""

    def report(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise error
        if onerror is not None:
            onerror(tensorflow_error(error))

    # Step by step: the caller may remove directories from the list before they are visited.
    walked = with_tensorflow_errors(file.walk)(top, topdown, report)
    step = with_tensorflow_errors(next)
    while (found := step(walked, None)) is not None:
        yield found


def read_text(path: Any, binary_mode: bool = False) -> Any:
    """`file_io.read_file_to_string`."""
    return file.read(path, binary=binary_mode)


def write_text(path: Any, content: str | bytes) -> None:
    """`file_io.write_string_to_file`."""
    file.write(path, content.encode() if isinstance(content, str) else content, binary=True)


def write_new(path: Any, content: str | bytes, overwrite: bool = True) -> None:
    """`file_io.atomic_write_string_to_file`. A store writes every file atomically."""
    _check_free(path, overwrite)
    write_text(path, content)


def has_atomic_move(path: Any) -> bool:
    """`file_io.has_atomic_move`: False, since a store renames by copying and removing.

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

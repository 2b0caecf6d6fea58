"""What Python's file functions call for URLs after `shift`.

The targets accept those options of the originals that make sense for a URL. Any other option is a TypeError.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import posixpath
from collections.abc import Callable
from typing import Any, NamedTuple

from moxing.framework.file import file_object, listing, operations
from moxing.framework.file.copying import copy as copying
from moxing.framework.file.entries import FileStatistics
from moxing.framework.file.errors import not_a_directory, not_exists
from moxing.framework.file.urls import find_remote


class Route(NamedTuple):
    """A function of the standard library: its module and name, which arguments are paths, what is called for URLs."""

    module: str
    name: str
    paths: tuple[str, ...]
    target: Callable[..., Any]


def _open(
    name: str,
    mode: str = "r",
    buffering: int = -1,  # File objects of mox.file have their own buffer.
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> file_object.File:
    return file_object.File(name, mode, encoding=encoding, errors=errors, newline=newline)


def _numpy_open(
    path: str, mode: str = "r", destpath: str = "", encoding: str | None = None, newline: str | None = None
) -> Any:
    """For numpy.loadtxt and similar functions, which would download the URL to the current directory."""
    if not path.endswith((".gz", ".bz2", ".xz")):
        return file_object.File(path, mode, encoding=encoding, newline=newline)
    opener = importlib.import_module({"gz": "gzip", "bz2": "bz2", "xz": "lzma"}[path.rpartition(".")[2]]).open
    if "r" in mode:
        return opener(file_object.File(path, "rb"), mode, encoding=encoding, newline=newline)
    file = file_object.File(path, mode.replace("t", "").replace("b", "") + "b")
    compressed = _CompressedWriter(opener(file, "wb"), file)
    return compressed if "b" in mode else io.TextIOWrapper(compressed, encoding=encoding, newline=newline)


class _CompressedWriter(io.BufferedWriter):
    """Compresses what is written to it into a file. Both are closed together."""

    def __init__(self, compressor: Any, file: file_object.File) -> None:
        super().__init__(compressor)
        self._file = file

    def close(self) -> None:
        super().close()
        self._file.close()


def _makedirs(name: str, mode: int = 0o777, exist_ok: bool = False) -> None:
    if not exist_ok and operations.exists(name):
        raise FileExistsError(errno.EEXIST, "name: it exists already, see exist_ok", name)
    operations.make_dirs(name)


def _mkdir(path: str, mode: int = 0o777) -> None:
    operations.mk_dir(path)


def _rmdir(path: str) -> None:
    remote = find_remote(path, "path")
    # The tree also has keys with an empty part, which no listing shows.
    if listing.list_directory(path) or (remote is not None and any(True for _ in remote.backend.tree(remote.path))):
        raise OSError(errno.ENOTEMPTY, "path: the directory is not empty", path)
    operations.remove(path, recursive=True)


def _remove(path: str) -> None:
    if not operations.stat(path).is_directory:
        operations.remove(path)
        return
    raise IsADirectoryError(errno.EISDIR, "path is a directory, shutil.rmtree removes it", path)


def _isfile(path: str) -> bool:
    return operations.exists(path) and not operations.stat(path).is_directory


def _stat(path: str, *, follow_symlinks: bool = True) -> FileStatistics:
    return operations.stat(path)


def _modified(path: str) -> float:
    return operations.stat(path).st_mtime


def _never(path: str) -> bool:
    return False


def _always(path: str) -> bool:
    return True


def _access(path: str, mode: int = 0, *, follow_symlinks: bool = True) -> bool:
    return operations.exists(path)


def _unchanged(path: str, *, strict: bool = False) -> str:
    return path


def _normpath(path: str) -> str:
    scheme, _, rest = path.partition("://")
    # posixpath treats a leading `//` specially, and the part after the slashes may be empty.
    return f"{scheme}://{posixpath.normpath('/' + rest)[1:]}" if scheme != "file" else path


def _iglob(pathname: str, *, recursive: bool = False) -> Any:
    return iter(listing.glob(pathname, recursive=recursive))


def _copyfile(src: str, dst: str, *, follow_symlinks: bool = True) -> str:
    copying.copy(src, dst)
    return dst


def _copy(src: str, dst: str, *, follow_symlinks: bool = True) -> str:
    return _copyfile(src, _inside(src, dst))


def _inside(src: str, dst: str) -> str:
    """Returns `dst`, or the path of `src` in it if it is a directory."""
    if not operations.is_directory(dst):
        return dst
    return posixpath.join(dst, posixpath.basename(os.fspath(src).rstrip("/")))


def _move(src: str, dst: str) -> str:
    target = _inside(src, dst)
    operations.rename(src, target)
    return target


def _check_directory(path: str, argument: str) -> None:
    if not operations.is_directory(path):
        if operations.exists(path):
            raise not_a_directory(argument, path, "give the path of a directory")
        raise not_exists(argument, path, "no such directory")


def _copytree(src: str, dst: str, *, dirs_exist_ok: bool = False) -> str:
    _check_directory(src, "src")
    if not dirs_exist_ok and operations.exists(dst):
        raise FileExistsError(errno.EEXIST, "dst: it exists already, see dirs_exist_ok", dst)
    copying.copy_parallel(src, dst)
    return dst


def _rmtree(path: str, ignore_errors: bool = False) -> None:
    try:
        _check_directory(path, "path")
        # With a slash it is the directory alone, where a key is a file, too.
        operations.remove(f"{os.fsdecode(path).rstrip('/')}/", recursive=True)
    except OSError:
        if not ignore_errors:
            raise


ROUTES = (
    Route("builtins", "open", ("file",), _open),
    Route("io", "open", ("file",), _open),
    Route("glob", "glob", ("pathname",), listing.glob),
    Route("glob", "iglob", ("pathname",), _iglob),
    Route("os", "access", ("path",), _access),
    Route("os", "listdir", ("path",), listing.list_directory),
    Route("os", "lstat", ("path",), _stat),
    Route("os", "makedirs", ("name",), _makedirs),
    Route("os", "mkdir", ("path",), _mkdir),
    Route("os", "remove", ("path",), _remove),
    Route("os", "rename", ("src", "dst"), operations.rename),
    Route("os", "replace", ("src", "dst"), operations.rename),
    Route("os", "rmdir", ("path",), _rmdir),
    Route("os", "scandir", ("path",), listing.scan_dir),
    Route("os", "stat", ("path",), _stat),
    Route("os", "unlink", ("path",), _remove),
    Route("os", "walk", ("top",), listing.walk),
    Route("os.path", "abspath", ("path",), _unchanged),
    Route("os.path", "exists", ("path",), operations.exists),
    Route("os.path", "getmtime", ("filename",), _modified),
    Route("os.path", "getsize", ("filename",), listing.get_size),
    Route("os.path", "isabs", ("s",), _always),
    Route("os.path", "isdir", ("s",), operations.is_directory),
    Route("os.path", "isfile", ("path",), _isfile),
    Route("os.path", "islink", ("path",), _never),
    Route("os.path", "lexists", ("path",), operations.exists),
    Route("os.path", "normpath", ("path",), _normpath),
    Route("os.path", "realpath", ("filename",), _unchanged),
    Route("shutil", "copy", ("src", "dst"), _copy),
    Route("shutil", "copy2", ("src", "dst"), _copy),
    Route("shutil", "copyfile", ("src", "dst"), _copyfile),
    Route("shutil", "copytree", ("src", "dst"), _copytree),
    Route("shutil", "move", ("src", "dst"), _move),
    Route("shutil", "rmtree", ("path",), _rmtree),
    Route("numpy.lib._datasource", "open", ("path",), _numpy_open),
)

"""Copies of files and of whole directories."""

from __future__ import annotations

import errno
import os
import stat as stat_module
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from moxing.framework.file.content import copy_stream
from moxing.framework.file.errors import (
    MoxFileNameDuplicateException,
    is_a_directory,
    not_exists,
)
from moxing.framework.file.file_object import open_stream
from moxing.framework.file.listing import TreeEntry, iterate_tree
from moxing.framework.file.paths import Url, is_inside, local_path
from moxing.framework.file.replacing import replace_file


def copy(src_url: Url, dst_url: Url, client_id: str | None = None) -> None:
    """Copies one file, with its permissions. Missing directories above `dst_url` are created.

    The copy appears under its name when it is complete, in place of what was there.

    Args:
      src_url: The file, a local path or a `file://` url.
      dst_url: The name of the copy.
      client_id: Names the connection to an object store; local files have none.

    Raises:
      MoxFileNotExistsException: `src_url` does not exist.
      IsADirectoryError: `src_url` or `dst_url` is a directory.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.write(folder + '/a.txt', 'hello')
      ...     mox.file.copy(folder + '/a.txt', folder + '/new/b.txt')
      ...     mox.file.read(folder + '/new/b.txt')
      'hello'
    """
    src, dst = local_path(src_url, "src_url"), local_path(dst_url, "dst_url")
    if not os.path.exists(src):
        raise not_exists("src_url", src)
    if os.path.isdir(src):
        raise is_a_directory("src_url", src, "mox.file.copy_parallel copies directories")
    if os.path.isdir(dst) or dst.endswith("/"):
        raise is_a_directory("dst_url", dst, "give the name of the copy")
    os.makedirs(os.path.dirname(os.path.realpath(dst)), exist_ok=True)
    _copy_file(src, dst)


def _copy_file(src: str, dst: str) -> None:
    status = os.stat(src)
    if not stat_module.S_ISREG(status.st_mode):
        # Reading a pipe could wait for ever.
        raise OSError(errno.EINVAL, "src_url is not a regular file", src)
    if os.path.exists(dst) and os.path.samefile(src, dst):
        return
    with open_stream(src, "rb", "src_url") as source:
        replace_file(dst, "dst_url", lambda target: copy_stream(source, target), status.st_mode & 0o777)


def copy_parallel(
    src_url: Url,
    dst_url: Url,
    file_list: Iterable[str] | None = None,
    threads: int = 16,
    is_processing: bool = True,
    use_queue: bool = True,
) -> None:
    """Copies what is in a directory into another one, which is created if need be. Files there are replaced.

    Links in `src_url` are followed. Everything is checked before the first file is copied: nothing is ever written
    outside `dst_url`, neither through `..` nor through a link in it.

    Args:
      src_url: The directory, a local path or a `file://` url. For a single file it is the same as `copy`.
      dst_url: The directory to copy into.
      file_list: What to copy, as paths relative to `src_url`, in place of everything; a directory stands for all that
        is in it.
      threads: How many files are copied at once.
      is_processing: Asked for processes instead of threads. Local copies take threads either way: copying keeps the
        disk busy, not Python.
      use_queue: Chose how processes were given their work; without effect for the same reason.

    Raises:
      MoxFileNotExistsException: `src_url` or an entry of `file_list` does not exist.
      MoxFileNameDuplicateException: A file stands in `dst_url` where a directory must be, or the other way round.
      ValueError: `dst_url` lies in `src_url`, or an entry of `file_list` leaves it.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.make_dirs(folder + '/data/train')
      ...     mox.file.write(folder + '/data/train/a.txt', 'a')
      ...     mox.file.copy_parallel(folder + '/data', folder + '/cache')
      ...     mox.file.list_directory(folder + '/cache', recursive=True)
      ['train', 'train/a.txt']
    """
    src, dst = local_path(src_url, "src_url"), local_path(dst_url, "dst_url")
    names = _check_file_list(file_list)
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads={threads!r}: expected a positive integer.")
    if not os.path.exists(src):
        raise not_exists("src_url", src)
    if not os.path.isdir(src):
        if names is not None:
            raise ValueError(f"file_list={names!r}: expected None, since src_url={src!r} is a file.")
        copy(src, dst)
        return
    plan = _Plan(src, dst)
    for entry in iterate_tree(src) if names is None else _select(src, names):
        plan.add(entry)
    for directory in plan.directories:
        os.makedirs(directory, exist_ok=True)
    _copy_all(plan.files, threads)


def _check_file_list(file_list: Iterable[str] | None) -> list[str] | None:
    if file_list is None:
        return None
    if isinstance(file_list, str | bytes | os.PathLike):
        raise TypeError(f"file_list={file_list!r}: expected a list of paths relative to src_url.")
    names = []
    for entry in file_list:
        name = os.path.normpath(local_path(entry, "file_list"))
        if os.path.isabs(name) or name == os.pardir or name.startswith(os.pardir + os.sep):
            raise ValueError(f"file_list entry {entry!r}: expected a path relative to src_url that stays in it.")
        names.append(name)
    return names


def _select(src: str, names: list[str]) -> Iterator[TreeEntry]:
    for name in names:
        path = os.path.join(src, name)
        if not os.path.exists(path):
            raise not_exists("file_list", path)
        is_directory = os.path.isdir(path)
        yield TreeEntry(name, is_directory)
        if is_directory:
            for entry in iterate_tree(path):
                yield TreeEntry(os.path.normpath(os.path.join(name, entry.relative)), entry.is_directory, entry.is_loop)


@dataclass
class _Plan:
    """What a directory copy will make, checked entry by entry."""

    src: str
    dst: str
    directories: dict[str, str] = field(default_factory=dict)  # Each with its resolved path.
    files: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dst = self.dst.rstrip("/") or "/"
        self._real_src, self._real_dst = os.path.realpath(self.src), os.path.realpath(self.dst)
        if is_inside(self._real_dst, self._real_src):
            raise ValueError(
                f"dst_url={self.dst!r}: expected a directory outside src_url={self.src!r}, "
                "a directory cannot be copied into itself."
            )
        self._add_directory(self.dst, self._real_dst)

    def add(self, entry: TreeEntry) -> None:
        """Takes up one entry of the source."""
        if entry.relative == os.curdir:
            return
        source, target = os.path.join(self.src, entry.relative), os.path.join(self.dst, entry.relative)
        if entry.is_loop:
            raise OSError(errno.ELOOP, "src_url contains a link to a directory above it", source)
        self._add_parents(target)
        if entry.is_directory:
            self._add_child_directory(target)
        else:
            self._add_file(source, target)

    def _add_file(self, source: str, target: str) -> None:
        if not os.path.exists(source):
            raise not_exists("src_url", source, "a link to nothing")
        if os.path.isdir(target) or target in self.directories:
            raise MoxFileNameDuplicateException(errno.EEXIST, "dst_url: a directory has the name of a file", target)
        if os.path.islink(target):
            self._check_target(os.path.realpath(target), target)
        self.files[target] = source

    def _add_parents(self, target: str) -> None:
        missing = []
        while (target := os.path.dirname(target)) not in self.directories:
            missing.append(target)
        for parent in reversed(missing):
            self._add_child_directory(parent)

    def _add_child_directory(self, target: str) -> None:
        if target not in self.directories:
            parent, name = os.path.split(target)
            # Only a link needs to be resolved, the parent is known: resolving every path takes long in deep trees.
            is_link = os.path.islink(target)
            self._add_directory(
                target, os.path.realpath(target) if is_link else os.path.join(self.directories[parent], name)
            )

    def _add_directory(self, target: str, real: str) -> None:
        self._check_target(real, target)
        if os.path.lexists(target) and not os.path.isdir(target):
            raise MoxFileNameDuplicateException(errno.EEXIST, "dst_url: a file has the name of a directory", target)
        self.directories[target] = real

    def _check_target(self, real: str, target: str) -> None:
        if not is_inside(real, self._real_dst):
            raise ValueError(f"dst_url={self.dst!r}: {target!r} is a link that leads out of it, to {real!r}.")
        if is_inside(real, self._real_src):
            # src_url in dst_url: the copy would replace files that are still to be read.
            raise ValueError(f"dst_url={self.dst!r}: {target!r} would be written into src_url={self.src!r}.")


def _copy_all(files: dict[str, str], threads: int) -> None:
    """Copies with several threads. The first failure stops the rest and is raised."""
    from concurrent.futures import ThreadPoolExecutor, as_completed

    if not files:
        return
    with ThreadPoolExecutor(min(threads, len(files)), thread_name_prefix="mox-copy") as pool:
        futures = [pool.submit(_copy_file, source, target) for target, source in files.items()]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise

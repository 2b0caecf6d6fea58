"""Copies of files and of whole directories."""

from __future__ import annotations

import errno
import os
import stat as stat_module
from collections.abc import Iterable, Iterator

from moxing.framework.file.backends import find_place
from moxing.framework.file.content import copy_stream
from moxing.framework.file.errors import is_a_directory, not_exists
from moxing.framework.file.file_object import open_stream
from moxing.framework.file.listing import TreeEntry, iterate_tree
from moxing.framework.file.paths import Url, local_path
from moxing.framework.file.replacing import replace_file
from moxing.framework.file.target_tree import TargetTree


def copy(src_url: Url, dst_url: Url, client_id: str | None = None) -> None:
    """Copies one file, a local one with its permissions. Missing directories above `dst_url` are created.

    The copy appears under its name when it is complete, in place of what was there.

    Args:
      src_url: The file, a path or url.
      dst_url: The name of the copy.
      client_id: Named the connection to an object store. Connections are shared by all calls; it has no effect.

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
    if find_place(src_url, "src_url") or find_place(dst_url, "dst_url"):
        from moxing.framework.file.remote_transfer import copy_one
        from moxing.framework.file.running import parts_at_once

        _check_other(src_url, dst_url)
        copy_one(src_url, dst_url, parts_at_once())
        return
    src, dst = local_path(src_url, "src_url"), local_path(dst_url, "dst_url")
    if not os.path.exists(src):
        raise not_exists("src_url", src)
    if os.path.isdir(src):
        raise is_a_directory("src_url", src, "mox.file.copy_parallel copies directories")
    if os.path.isdir(dst) or dst.endswith("/"):
        raise is_a_directory("dst_url", dst, "give the name of the copy")
    os.makedirs(os.path.dirname(os.path.realpath(dst)), exist_ok=True)
    copy_local(src, dst)


def copy_local(src: str, dst: str) -> None:
    """Copies a local file to a local path in a directory that exists.

    Example:
      >>> copy_local('/no/such/file', '/tmp/x')
      Traceback (most recent call last):
      ...
      FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'
    """
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
    outside `dst_url`, neither through `..` nor through a link in it. Large files of an object store are copied in
    parts; one that was cut off on its way to the disk is continued by the next call.

    Args:
      src_url: The directory, a path or url. For a single file it is the same as `copy`.
      dst_url: The directory to copy into.
      file_list: What to copy, as paths relative to `src_url`, in place of everything; a directory stands for all that
        is in it.
      threads: How many files are copied at once.
      is_processing: Whether processes may be started for many files of an object store. Local copies take threads
        either way: copying keeps the disk busy, not Python.
      use_queue: Whether these processes take the next files when they are done with some (True), or each gets its share
        at once (False).

    Raises:
      MoxFileNotExistsException: `src_url` or an entry of `file_list` does not exist.
      MoxFileNameDuplicateException: A file stands where a directory must be, or the other way round; a key of an object
        store may be both.
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
    is_remote = find_place(src_url, "src_url") or find_place(dst_url, "dst_url")
    _check_other(src_url, dst_url)
    names = _check_file_list(file_list)
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads={threads!r}: expected a positive integer.")
    if is_remote:
        from moxing.framework.file.remote_transfer import copy_tree
        from moxing.framework.file.running import CopyOptions

        copy_tree(src_url, dst_url, names, CopyOptions(threads, bool(is_processing), bool(use_queue)))
        return
    src, dst = local_path(src_url, "src_url"), local_path(dst_url, "dst_url")
    if not os.path.exists(src):
        raise not_exists("src_url", src)
    if not os.path.isdir(src):
        if names is not None:
            raise ValueError(f"file_list={names!r}: expected None, since src_url={src!r} is a file.")
        copy(src, dst)
        return
    tree = TargetTree(dst, src)
    files = {}
    for entry in iterate_tree(src) if names is None else select_entries(src, names):
        if entry.relative == os.curdir:
            continue
        source = os.path.join(src, entry.relative)
        if entry.is_loop:
            raise OSError(errno.ELOOP, "src_url contains a link to a directory above it", source)
        if entry.is_directory:
            tree.add_directory(entry.relative)
            continue
        if not os.path.exists(source):
            raise not_exists("src_url", source, "a link to nothing")
        files[tree.add_file(entry.relative)] = source
    tree.make_directories()
    _copy_all(files, threads)


def _check_other(src_url: Url, dst_url: Url) -> None:
    """Of a url and a local path the local one has to be a path, too, before anything is sent."""
    for url, argument in ((src_url, "src_url"), (dst_url, "dst_url")):
        if not find_place(url, argument):
            local_path(url, argument)


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


def select_entries(src: str, names: list[str]) -> Iterator[TreeEntry]:
    """The named parts of a local directory, each directory with all that is in it.

    Example:
      >>> next(select_entries('/', ['.'])).relative
      '.'
    """
    for name in names:
        path = os.path.join(src, name)
        if not os.path.exists(path):
            raise not_exists("file_list", path)
        is_directory = os.path.isdir(path)
        yield TreeEntry(name, is_directory)
        if is_directory:
            for entry in iterate_tree(path):
                yield TreeEntry(os.path.normpath(os.path.join(name, entry.relative)), entry.is_directory, entry.is_loop)


def _copy_all(files: dict[str, str], threads: int) -> None:
    """Copies with several threads. The first failure stops the rest and is raised."""
    from concurrent.futures import ThreadPoolExecutor, as_completed

    if not files:
        return
    with ThreadPoolExecutor(min(threads, len(files)), thread_name_prefix="mox-copy") as pool:
        futures = [pool.submit(copy_local, source, target) for target, source in files.items()]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise

"""Operations on one path: exists, is_directory, stat, make_dirs, mk_dir, rename, remove."""

from __future__ import annotations

import errno
import os
import stat as stat_module
from typing import Any

from moxing.framework.file.entries import FileStatistics
from moxing.framework.file.errors import not_exists
from moxing.framework.file.urls import Url, find_remote, is_inside, local_path


def exists(url: Url) -> bool:
    """Returns whether a file or directory exists. A broken link does not exist.

    Example:
      >>> import moxing as mox
      >>> mox.file.exists('/no/such/file')
      False
    """
    if remote := find_remote(url, "url"):
        return remote.backend.stat(remote.path) is not None
    return url not in ("", b"") and os.path.exists(local_path(url, "url"))


def is_directory(url: Url) -> bool:
    """Returns whether `url` is an existing directory.

    On an object store, it is a directory if a key starts with it and a slash.

    Example:
      >>> import moxing as mox
      >>> mox.file.is_directory('/')
      True
    """
    if remote := find_remote(url, "url"):
        return remote.backend.is_directory(remote.path)
    return url not in ("", b"") and os.path.isdir(local_path(url, "url"))


def stat(url: Url) -> FileStatistics:
    """Returns size, modification time and kind of a file or directory.

    Raises:
      MoxFileNotExistsException: `url` does not exist.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.write(folder + '/a.txt', 'hello')
      ...     mox.file.stat(folder + '/a.txt').length
      5
    """
    if remote := find_remote(url, "url"):
        found = remote.backend.stat(remote.path)
        if found is None:
            raise not_exists("url", remote.url)
        return found
    path = local_path(url, "url")
    try:
        result = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise not_exists("url", path) from None
    is_dir = stat_module.S_ISDIR(result.st_mode)
    # The size of a directory entry on the disk is not content.
    return FileStatistics(0 if is_dir else result.st_size, result.st_mtime_ns, is_dir, result.st_mode)


def make_dirs(url: Url) -> None:
    """Creates a directory and its missing parents.

    Raises:
      FileExistsError: A file has that name.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.make_dirs(folder + '/a/b')
      ...     mox.file.is_directory(folder + '/a/b')
      True
    """
    if remote := find_remote(url, "url"):
        remote_operations().make_dirs(remote)
        return
    os.makedirs(local_path(url, "url"), exist_ok=True)


def mk_dir(url: Url) -> None:
    """Creates one directory.

    Raises:
      MoxFileNotExistsException: The parent directory does not exist (an OSError).
      FileExistsError: The name is taken already.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.mk_dir(folder + '/a')
      ...     mox.file.exists(folder + '/a')
      True
    """
    if remote := find_remote(url, "url"):
        remote_operations().mk_dir(remote)
        return
    path = local_path(url, "url")
    try:
        os.mkdir(path)
    except FileNotFoundError:
        raise not_exists("url", path, "the parent directory does not exist, make_dirs creates it too") from None


def rename(src_url: Url, dst_url: Url) -> None:
    """Moves a file or directory to another name, also to another disk or store.

    Object stores have no such operation: the object is copied (inside the store if possible), then the old one is
    removed. A process that is killed in between leaves both.

    A file at `dst_url` is replaced. A directory there is replaced only by a directory, and only if it is empty.

    Args:
      src_url: The file or directory to move, a path or url.
      dst_url: The new name, in a directory that exists.

    Raises:
      MoxFileNotExistsException: `src_url` or the directory of `dst_url` does not exist.
      OSError: A directory that is not empty has the name, or a directory is moved into itself.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.write(folder + '/a', 'x')
      ...     mox.file.rename(folder + '/a', folder + '/b')
      ...     mox.file.list_directory(folder)
      ['b']
    """
    if find_remote(src_url, "src_url") or find_remote(dst_url, "dst_url"):
        remote_operations().rename(src_url, dst_url)
        return
    src, dst = local_path(src_url, "src_url"), local_path(dst_url, "dst_url")
    if not os.path.lexists(src):
        raise not_exists("src_url", src)
    parent = os.path.dirname(os.path.abspath(dst))
    if not os.path.isdir(parent):
        raise not_exists("dst_url", dst, f"the directory {parent!r} does not exist, mox.file.make_dirs creates it")
    is_tree = os.path.isdir(src) and not os.path.islink(src)
    source, target = os.path.realpath(src), os.path.realpath(dst)
    if is_tree and source != target and is_inside(target, source):
        raise OSError(errno.EINVAL, f"dst_url: {src!r} cannot be moved into itself", dst)
    try:
        os.replace(src, dst)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _move_to_other_device(src, dst)


def _move_to_other_device(src: str, dst: str) -> None:
    """Copies next to `dst`, renames, then removes `src`: at any time one of them is complete."""
    import shutil

    temporary = os.path.join(os.path.dirname(os.path.abspath(dst)), f".mox-{os.urandom(8).hex()}.tmp")
    is_tree = os.path.isdir(src) and not os.path.islink(src)
    try:
        if is_tree:
            shutil.copytree(src, temporary, symlinks=True)
        else:
            shutil.copy2(src, temporary, follow_symlinks=False)
        os.sync()
        os.replace(temporary, dst)
    except BaseException:
        remove_tree(temporary)
        raise
    remove_tree(src)


def remove(url: Url, recursive: bool = False, *, recurisive: bool | None = None) -> None:
    """Removes a file, or with `recursive` a directory and everything in it.

    Without `recursive`, a directory is left alone; so is a file whose name is given with a slash at the end. For a link
    to a directory, only the link is removed.

    Args:
      url: A path or url.
      recursive: Whether to remove a directory. A file is removed either way.
      recurisive: The same as `recursive`, as spelled in the documentation of the original MoXing.

    Raises:
      MoxFileNotExistsException: `url` does not exist.
      ValueError: `url` is with `recursive` a whole file system, home directory or bucket, or ends in `.` or `..`.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.make_dirs(folder + '/a/b')
      ...     mox.file.remove(folder + '/a')
      ...     mox.file.exists(folder + '/a')
      ...     mox.file.remove(folder + '/a', recursive=True)
      ...     mox.file.exists(folder + '/a')
      True
      False
    """
    recursive = bool(recursive or recurisive)
    if recursive:
        check_removable(url, "url")
    if remote := find_remote(url, "url"):
        remote_operations().remove(remote, recursive)
        return
    path = local_path(url, "url")
    # Without the slash, a link is the link itself, not what it points to.
    name = path.rstrip("/") or path
    if not os.path.lexists(name):
        raise not_exists("url", path)
    if os.path.isdir(name):
        if recursive:
            remove_tree(name)
    elif name == path:
        os.remove(path)


def check_removable(url: Url, argument: str) -> None:
    """Raises an error for a directory that nobody removes on purpose, before anything in it is removed.

    Example:
      >>> check_removable('data/..', 'url')
      Traceback (most recent call last):
      ...
      ValueError: url='data/..': a directory named . or .. cannot be removed. Nothing was removed; give its name.
    """
    if remote := find_remote(url, argument):
        # The first part of the path is the bucket; a file system, too, has a root.
        if "/" not in remote.path.strip("/") if not remote.backend.has_real_directories else not remote.path.strip("/"):
            raise ValueError(
                f"{argument}={remote.url!r}: expected a directory, not a whole bucket or file system. Nothing was "
                f"removed; `moxing file rm -r '{remote.url.rstrip('/')}/*'` removes everything in it."
            )
        return
    path = local_path(url, argument)
    name = path.rstrip("/")
    if os.path.basename(name) in (os.curdir, os.pardir):
        raise ValueError(
            f"{argument}={path!r}: a directory named . or .. cannot be removed. Nothing was removed; give its name."
        )
    if os.path.islink(name):
        return
    real, home = os.path.realpath(path), os.path.realpath(os.path.expanduser("~"))
    if real == "/" or is_inside(home, real):
        place = "the root of the file system" if real == "/" else f"the home directory {home!r} or one above it"
        raise ValueError(f"{argument}={path!r}: expected a directory other than {place}. Nothing was removed.")


def remote_operations() -> Any:
    """Returns the module for remote paths, which most processes never need."""
    from moxing.framework.file.remote import operations as remote_operations

    return remote_operations


def remove_tree(path: str) -> None:
    """Removes a local file or directory if it exists. Links are not followed.

    Example:
      >>> remove_tree('/no/such/directory')
    """
    import shutil

    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)

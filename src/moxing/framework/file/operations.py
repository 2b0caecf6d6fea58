"""One path at a time: what is there, make, move, remove."""

from __future__ import annotations

import errno
import os
import stat as stat_module
from typing import Any

from moxing.framework.file.backends import find_place
from moxing.framework.file.entries import FileStatistics
from moxing.framework.file.errors import not_exists
from moxing.framework.file.paths import Url, is_inside, local_path


def exists(url: Url) -> bool:
    """Whether there is a file or directory. A link to nothing does not exist.

    Example:
      >>> import moxing as mox
      >>> mox.file.exists('/no/such/file')
      False
    """
    if place := find_place(url, "url"):
        return place.backend.stat(place.path) is not None
    return url not in ("", b"") and os.path.exists(local_path(url, "url"))


def is_directory(url: Url) -> bool:
    """Whether there is a directory; False too if there is nothing at all.

    On an object store it is a directory if a key begins with it and a slash.

    Example:
      >>> import moxing as mox
      >>> mox.file.is_directory('/')
      True
    """
    if place := find_place(url, "url"):
        return place.backend.is_directory(place.path)
    return url not in ("", b"") and os.path.isdir(local_path(url, "url"))


def stat(url: Url) -> FileStatistics:
    """The size, the time of the last change and the kind of a file or directory.

    Raises:
      MoxFileNotExistsException: There is nothing at `url`.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.write(folder + '/a.txt', 'hello')
      ...     mox.file.stat(folder + '/a.txt').length
      5
    """
    if place := find_place(url, "url"):
        found = place.backend.stat(place.path)
        if found is None:
            raise not_exists("url", place.url)
        return found
    path = local_path(url, "url")
    try:
        result = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise not_exists("url", path) from None
    is_dir = stat_module.S_ISDIR(result.st_mode)
    # A directory's own bytes on the disk are no content.
    return FileStatistics(0 if is_dir else result.st_size, result.st_mtime_ns, is_dir, result.st_mode)


def make_dirs(url: Url) -> None:
    """Creates a directory and the directories above it, as far as they are missing.

    Raises:
      FileExistsError: A file has that name.

    Example:
      >>> import moxing as mox, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     mox.file.make_dirs(folder + '/a/b')
      ...     mox.file.is_directory(folder + '/a/b')
      True
    """
    if place := find_place(url, "url"):
        remote_operations().make_dirs(place)
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
    if place := find_place(url, "url"):
        remote_operations().mk_dir(place)
        return
    path = local_path(url, "url")
    try:
        os.mkdir(path)
    except FileNotFoundError:
        raise not_exists("url", path, "the parent directory does not exist, make_dirs creates it too") from None


def rename(src_url: Url, dst_url: Url) -> None:
    """Moves a file or directory to another name, also to another disk or store.

    An object store has no such operation: there it is a copy, made by the store itself if both names are in it, after
    which the old one is removed. A process that is killed in between leaves both.

    A file at `dst_url` is replaced; a directory there is only replaced by a directory, and only if it is empty.

    Args:
      src_url: What to move, a path or url.
      dst_url: Its new name, in a directory that exists.

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
    if find_place(src_url, "src_url") or find_place(dst_url, "dst_url"):
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
    """Copies beside `dst`, renames, and only then removes `src`: at every moment one of them is whole."""
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
    """Removes a file, or with `recursive` a directory with all that is in it.

    Nothing happens for a directory without `recursive`, and for the name of a file with a slash behind it. Of a link
    to a directory only the link is removed.

    Args:
      url: A path or url.
      recursive: Whether a directory is removed. A file is removed either way.
      recurisive: The same; the documentation of MoXing spelt it so.

    Raises:
      MoxFileNotExistsException: There is nothing at `url`.

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
    if place := find_place(url, "url"):
        remote_operations().remove(place, bool(recursive or recurisive))
        return
    path = local_path(url, "url")
    # Without the last slash a link is the link itself, not what it points to.
    bare = path.rstrip("/") or path
    if not os.path.lexists(bare):
        raise not_exists("url", path)
    if os.path.isdir(bare):
        if recursive or recurisive:
            remove_tree(bare)
    elif bare == path:
        os.remove(path)


def remote_operations() -> Any:
    """The same operations on backends, which most processes never need."""
    from moxing.framework.file import remote_operations

    return remote_operations


def remove_tree(path: str) -> None:
    """Removes whatever is at a local path, if anything; links are not followed.

    Example:
      >>> remove_tree('/no/such/directory')
    """
    import shutil

    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)

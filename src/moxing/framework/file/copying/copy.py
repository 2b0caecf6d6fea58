"""`copy` and `copy_parallel`: check the arguments, plan the copy, run the plan."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moxing.framework.file.errors import is_a_directory, not_exists
from moxing.framework.file.urls import Location, Url, local_path, resolve, url_of

if TYPE_CHECKING:
    from moxing.framework.file.copying.run_plan import CopyOptions

# The planner and the runner are imported with the first copy: `import moxing` must stay fast.


def copy(src_url: Url, dst_url: Url, client_id: str | None = None) -> None:
    """Copies one file, a local one with its permissions. Missing parent directories of `dst_url` are created.

    The copy appears when it is complete and replaces an existing file.

    Args:
      src_url: The file, a path or url.
      dst_url: The name of the copy.
      client_id: No effect: all calls share the connections to an object store.

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
    from moxing.framework.file.copying.run_plan import CopyOptions

    _copy_one(resolve(src_url, "src_url"), resolve(dst_url, "dst_url"), CopyOptions())


def copy_parallel(
    src_url: Url,
    dst_url: Url,
    file_list: Iterable[str] | None = None,
    threads: int = 16,
    is_processing: bool = True,
    use_queue: bool = True,
) -> None:
    """Copies the content of a directory into another one, which is created if necessary. Existing files are replaced.

    Links in `src_url` are followed. Everything is checked before the first file is copied: nothing is written outside
    `dst_url`, neither through `..` nor through a link in it. Large files of an object store are copied in parts; the
    next call resumes an interrupted download.

    Args:
      src_url: The directory, a path or url. A single file is copied as by `copy`.
      dst_url: The directory to copy into.
      file_list: Paths relative to `src_url` to copy instead of everything. A directory stands for all of its content.
      threads: How many files are copied at the same time.
      is_processing: Whether to start worker processes for many files of an object store. Local copies always use
        threads only: they keep the disk busy, not Python.
      use_queue: Whether the workers share a queue of files (True), or each gets its share at the start (False).

    Raises:
      MoxFileNotExistsException: `src_url` or an entry of `file_list` does not exist.
      MoxFileNameDuplicateException: A file has the name of a directory, or the other way round; a key of an object
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
    source, target = resolve(src_url, "src_url"), resolve(dst_url, "dst_url")
    names = _check_file_list(file_list)
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads={threads!r}: expected a positive integer.")
    from moxing.framework.file.copying.plan import CopyPlan
    from moxing.framework.file.copying.run_plan import CopyOptions, run_plan
    from moxing.framework.file.copying.source import list_source

    options = CopyOptions(threads, bool(is_processing), bool(use_queue))
    if not _is_directory(source):
        if not _exists(source):
            raise not_exists("src_url", url_of(source))
        if names is not None:
            raise ValueError(f"file_list={names!r}: expected None, since src_url={url_of(source)!r} is a file.")
        _copy_one(source, target, options)
        return
    plan = CopyPlan()
    plan.add_tree(source, target, list_source(source, names))
    run_plan(plan, options)


def _copy_one(source: Location, target: Location, options: CopyOptions) -> None:
    from moxing.framework.file.copying.plan import CopyPlan, lies_in
    from moxing.framework.file.copying.run_plan import run_plan

    _check_file(source)
    _check_target(target)
    if lies_in(source, target) and lies_in(target, source):
        if not _exists(source):
            raise not_exists("src_url", url_of(source))
        return
    is_new_directory = isinstance(target, str) and not os.path.isdir(os.path.dirname(os.path.realpath(target)))
    # Do not create a directory for a file that does not exist.
    if is_new_directory and not _exists(source):
        raise not_exists("src_url", url_of(source))
    plan = CopyPlan()
    plan.add_file(source, target, _length_for_bar(source))
    try:
        run_plan(plan, options)
    except FileNotFoundError as error:
        # The bucket of the target may be missing, too.
        if not isinstance(source, str) and error.filename == source.url and source.backend.is_directory(source.path):
            raise is_a_directory("src_url", source.url, "mox.file.copy_parallel copies directories") from None
        raise


def _check_file(source: Location) -> None:
    """Raises an error if it is known without a request that the source is not a file."""
    if isinstance(source, str):
        if not os.path.exists(source):
            raise not_exists("src_url", source)
        if os.path.isdir(source):
            raise is_a_directory("src_url", source, "mox.file.copy_parallel copies directories")
    elif source.path.endswith("/"):
        if source.backend.is_directory(source.path):
            raise is_a_directory("src_url", source.url, "mox.file.copy_parallel copies directories")
        raise not_exists("src_url", source.url, "no such file")


def _check_target(target: Location) -> None:
    path = target if isinstance(target, str) else target.path
    if path.endswith("/") or (not isinstance(target, str) and "/" not in path) or _is_directory(target):
        raise is_a_directory("dst_url", url_of(target), "give the name of the copy")


def _length_for_bar(source: Location) -> int | None:
    """Returns the size of a remote file only if a progress bar is shown: it takes a request."""
    if isinstance(source, str):
        return os.path.getsize(source)
    from moxing.framework.util.terminal import has_terminal

    found = source.backend.stat(source.path) if has_terminal() else None
    return None if found is None else found.length


def _is_directory(location: Location) -> bool:
    return os.path.isdir(location) if isinstance(location, str) else location.backend.is_directory(location.path)


def _exists(location: Location) -> bool:
    if isinstance(location, str):
        return os.path.exists(location)
    return location.backend.stat(location.path) is not None


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

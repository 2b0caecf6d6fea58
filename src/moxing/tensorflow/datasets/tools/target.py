"""The directory that a tool writes a dataset to: checks, a lock for one process, a progress bar."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from moxing.framework.file.urls import Url, is_inside, local_path
from moxing.framework.util.terminal import has_terminal
from moxing.tensorflow.datasets.stored.objects import is_stored


def local_target(dst_dir: Url) -> str:
    """Returns the absolute path of the directory to write to.

    Example:
      >>> local_target('s3://bucket/split')
      Traceback (most recent call last):
      ValueError: dst_dir='s3://bucket/split': expected a local directory; mox.file.copy_parallel ...
    """
    if is_stored(dst_dir):
        raise ValueError(
            f"dst_dir={os.fsdecode(dst_dir)!r}: expected a local directory; mox.file.copy_parallel copies it to an "
            "object store afterwards."
        )
    return os.path.abspath(local_path(dst_dir, "dst_dir"))


def real_source(src: str) -> str:
    """Returns the directory that is read, with links resolved.

    Example:
      >>> real_source('s3://bucket/data')
      's3://bucket/data'
    """
    return src if is_stored(src) else os.path.realpath(src)


def check_target(src: str, dst: str) -> None:
    """Raises an error if `dst` is a file or lies inside `src`.

    Example:
      >>> check_target('/data', '/data/split')
      Traceback (most recent call last):
      ValueError: dst_dir='/data/split' lies in src_dir='/data': expected a directory outside of it.
    """
    if os.path.lexists(dst) and not os.path.isdir(dst):
        raise ValueError(f"dst_dir={dst!r} is a file: expected a directory.")
    if is_inside(os.path.realpath(dst), real_source(src)):
        raise ValueError(f"dst_dir={dst!r} lies in src_dir={src!r}: expected a directory outside of it.")


@contextmanager
def only_process(dst: str, doing: str) -> Iterator[None]:
    """Locks `dst` against other processes; `doing` is for the error message.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as dst, only_process(dst, 'writing'), only_process(dst, 'writing'):
      ...     print('two at once')
      Traceback (most recent call last):
      ValueError: dst_dir=...: another process is writing there right now.
    """
    descriptor = os.open(dst, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"dst_dir={dst!r}: another process is {doing} there right now.") from None
        except OSError:
            pass  # some network drives cannot lock directories
        yield
    finally:
        os.close(descriptor)


@contextmanager
def progress_bar(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """Shows how many of `total` files are done, on a terminal only; yields the function that counts them.

    Example:
      >>> with progress_bar('split', 10) as advance:
      ...     advance(10)
    """
    if not has_terminal():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(name), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(name, total=total)
        yield lambda count: display.advance(task, count)

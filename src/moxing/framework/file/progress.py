"""The progress bar of a transfer, shown on a terminal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from moxing.framework.util.terminal import has_terminal
from moxing.framework.util.thread_pool import is_shutting_down

#: A smaller transfer is over before a bar could be read.
_MIN_BYTES = 8 << 20
_MIN_FILES = 200
#: There is one terminal, so there is at most one bar. Many threads may advance it.
_advance: Callable[[int, int], object] | None = None


def advance(count: int, files: int = 0) -> None:
    """Advances the bar by `count` bytes and `files` files. Does nothing if no bar is shown.

    Example:
      >>> advance(100)
    """
    if _advance is not None:
        _advance(count, files)


@contextmanager
def transfer_bar(total: int, description: str = "Copying", files: int = 1) -> Iterator[None]:
    """Shows a progress bar for `total` bytes in `files` files, if standard error is a terminal.

    Example:
      >>> with transfer_bar(10):
      ...     advance(10)
    """
    global _advance
    if (total < _MIN_BYTES and files < _MIN_FILES) or _advance is not None or not has_terminal() or is_shutting_down():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = [TextColumn("[bold]{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()]
    if files > 1:
        columns.insert(2, TextColumn("{task.fields[done]:,}/{task.fields[files]:,} files"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as display:
        task = display.add_task(description, total=total, files=files, done=0)
        lock, done = threading.Lock(), 0

        def update(count: int, complete: int) -> None:
            nonlocal done
            with lock:
                done += complete
                display.update(task, advance=count, done=done)

        _advance = update
        try:
            yield
        finally:
            _advance = None

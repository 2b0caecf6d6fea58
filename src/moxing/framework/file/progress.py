"""How far a transfer has come, as a bar on a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: What is smaller is over before a bar could be read.
_SMALLEST = 8 << 20
_FEWEST_FILES = 200
#: There is one terminal, and so at most one bar; its transfer may be made by many threads.
_advance: Callable[[int, int], object] | None = None


def advance(count: int, files: int = 0) -> None:
    """Tells that `count` more bytes have arrived, and `files` more files are complete; without a bar it does nothing.

    Example:
      >>> advance(100)
    """
    if _advance is not None:
        _advance(count, files)


@contextmanager
def transfer_bar(total: int, description: str = "Copying", files: int = 1) -> Iterator[None]:
    """Shows a bar for `total` bytes in `files` files while the block runs, if standard error is a terminal.

    Example:
      >>> with transfer_bar(10):
      ...     advance(10)
    """
    global _advance
    if (total < _SMALLEST and files < _FEWEST_FILES) or _advance is not None or not sys.stderr.isatty():
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

"""How far a transfer has come, as a bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: What is smaller is over before a bar could be read.
_SMALLEST = 8 << 20
#: There is one terminal, and so at most one bar; its transfer may be made by many threads.
_advance: Callable[[int], object] | None = None


def advance(count: int) -> None:
    """Tells that `count` more bytes have arrived; without a bar it does nothing.

    Example:
      >>> advance(100)
    """
    if _advance is not None:
        _advance(count)


@contextmanager
def transfer_bar(total: int, description: str = "Copying") -> Iterator[None]:
    """Shows a bar for `total` bytes while the block runs, if standard error is a terminal.

    Example:
      >>> with transfer_bar(10):
      ...     advance(10)
    """
    global _advance
    if total < _SMALLEST or _advance is not None or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = [TextColumn("[bold]{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()]
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as display:
        task = display.add_task(description, total=total)
        _advance = lambda count: display.advance(task, count)  # noqa: E731
        try:
            yield
        finally:
            _advance = None

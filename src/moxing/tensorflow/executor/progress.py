"""A progress bar below the log lines, on a terminal only."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.learning_rates import ShownRates
from moxing.tensorflow.executor.loop import Progress

_OPEN_END = 10**12  # a target beyond this means "to the end of the data": there is no total to show


class Bar(Protocol):
    """Shows how far a run is."""

    def update(self, done: int, progress: Progress) -> None:
        """Shows that `done` steps are done."""


class _NoBar:
    def update(self, done: int, progress: Progress) -> None:
        """In a pipe there are only the log lines."""


class _RichBar:
    def __init__(self, display: Any, task: Any, rates: ShownRates | None) -> None:
        self._display, self._task, self._rates = display, task, rates

    def update(self, done: int, progress: Progress) -> None:
        values = "  ".join(f"{name} {value:.4g}" for name, value in progress.ledger.last.items())
        if self._rates is not None and (text := self._rates.text()):
            values = f"{values}  {text}" if values else text
        speed = self._display.tasks[0].speed
        rate = f"{speed:,.1f} steps/s" if speed else ""
        self._display.update(self._task, completed=done, values=values, rate=rate)


@contextmanager
def progress_bar(config: RunConfig, start: int, rates: ShownRates | None = None) -> Iterator[Bar]:
    """Shows a bar with steps/s, time left, the latest log_info and the learning rate while the run goes on.

    Args:
      config: the run.
      start: steps that were done before.
      rates: the learning rates, where there are any.
    """
    if not sys.stderr.isatty():
        yield _NoBar()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Display

    console = Console(stderr=True)
    columns = [
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[values]}"),
    ]
    display = Display(*columns, console=console, transient=True)
    with display, _logs_above(console):
        total = None if config.max_steps > _OPEN_END else config.max_steps
        task = display.add_task(config.mode.value, total=total, completed=start, values="", rate="")
        yield _RichBar(display, task, rates)


@contextmanager
def _logs_above(console: Any) -> Iterator[None]:
    """Sends log lines that go to the terminal through the console, which keeps the bar below them."""

    class Above:
        def write(self, text: str) -> None:
            console.out(text, end="", highlight=False)

        def flush(self) -> None:
            """The console flushes by itself."""

    terminals = {sys.stderr, sys.__stderr__, sys.stdout, sys.__stdout__, console.file}
    redirected: list[tuple[logging.StreamHandler[Any], Any]] = []
    for name in ("", "tensorflow", "moxing"):
        for handler in logging.getLogger(name).handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream in terminals:
                redirected.append((handler, handler.setStream(Above())))
    try:
        yield
    finally:
        for handler, stream in redirected:
            handler.setStream(stream)

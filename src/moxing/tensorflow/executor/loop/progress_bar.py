"""A progress bar below the log lines, for a run on a terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moxing.tensorflow.executor.actions.context import RunContext
from moxing.tensorflow.executor.loop.progress import Progress
from moxing.tensorflow.executor.loop.shown_rates import ShownRates

_OPEN_END = 10**12  # beyond this, max_steps means "to the end of the data": no total is shown


class Bar:
    """Shows the progress of a run.

    Args:
      display: a display of `rich`.
      task: its task.
      rates: the learning rates.
    """

    def __init__(self, display: Any, task: Any, rates: ShownRates) -> None:
        self._display, self._task, self._rates = display, task, rates

    def update(self, done: int, progress: Progress) -> None:
        """Shows that `done` steps are done."""
        values = "  ".join(f"{name} {value:.4g}" for name, value in progress.ledger.last.items())
        if text := self._rates.text():
            values = f"{values}  {text}" if values else text
        speed = self._display.tasks[0].speed
        rate = f"{speed:,.1f} steps/s" if speed else ""
        self._display.update(self._task, completed=done, values=values, rate=rate)


@contextmanager
def progress_bar(run: RunContext) -> Iterator[Bar]:
    """Shows a bar with steps/s, time left, the latest log_info and the learning rate during the run.

    Args:
      run: the open run.
    """
    total = None if run.config.max_steps > _OPEN_END else run.config.max_steps
    done = run.start.global_step if run.training else 0
    with open_display(run.config.mode.value, total, done) as (display, task):
        yield Bar(display, task, ShownRates(run.step.rates, run.session))


@contextmanager
def open_display(title: str, total: int | None, done: int) -> Iterator[tuple[Any, Any]]:
    """Shows a bar on the terminal, below the log lines.

    Args:
      title: the text before it.
      total: the step to end at; None if it is not known.
      done: the step to start at.

    Returns:
      A display of `rich` and its task, which has the fields `rate` and `values`.
    """
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
        yield display, display.add_task(title, total=total, completed=done, values="", rate="")


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

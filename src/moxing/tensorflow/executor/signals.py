"""Ctrl-C and SIGTERM: the running steps are finished, then the run saves and leaves."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class StopSignal:
    """Whether a signal asked the run to stop, and which."""

    def __init__(self) -> None:
        self.number: int | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of a process that the signal ended: 130 for Ctrl-C, 143 for SIGTERM.

        Example:
          >>> stop = StopSignal(); stop.number = signal.SIGINT; stop.exit_code
          130
        """
        return 128 + int(self.number or 0)


@contextmanager
def watch_signals() -> Iterator[StopSignal]:
    """Inside, the first Ctrl-C or SIGTERM only sets `StopSignal.number`; a second one acts as usual."""
    stop = StopSignal()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # Python allows handlers in the main thread only
        return
    previous: dict[int, Any] = {}

    def handle(number: int, frame: FrameType | None) -> None:
        stop.number = number
        signal.signal(number, previous[number] if previous[number] is not None else signal.SIG_DFL)

    for caught in (signal.SIGINT, signal.SIGTERM):
        previous[caught] = signal.signal(caught, handle)
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

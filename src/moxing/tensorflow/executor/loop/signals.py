"""Handles Ctrl-C, SIGTERM and SIGHUP: the run finishes the current steps, saves and exits."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from moxing.framework.file.waiting import cancel_when

_CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignal:
    """Whether a signal asked the run to stop, and which."""

    def __init__(self) -> None:
        self.number: int | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of a process that the signal ended: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP.

        Example:
          >>> stop = StopSignal(); stop.number = signal.SIGINT; stop.exit_code
          130
        """
        return 128 + int(self.number or 0)


@contextmanager
def watch_signals() -> Iterator[StopSignal]:
    """Inside, the first signal only sets `StopSignal.number`; a second one has its usual effect."""
    stop = StopSignal()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # Python allows handlers in the main thread only
        return
    previous: dict[int, Any] = {}

    def handle(number: int, frame: FrameType | None) -> None:
        stop.number = number
        signal.signal(number, previous[number] if previous[number] is not None else signal.SIG_DFL)

    for caught in _CAUGHT:
        if caught != signal.SIGHUP or signal.getsignal(caught) is not signal.SIG_IGN:  # nohup
            previous[caught] = signal.signal(caught, handle)
    try:
        with _arrivals():
            yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


#: For each run that watches: whether a signal has arrived.
_watching: list[Callable[[], bool]] = []
# Threads that wait for a store end then.
cancel_when(lambda: any(has_arrived() for has_arrived in _watching))


@contextmanager
def _arrivals() -> Iterator[None]:
    """Tells other threads whether a signal has arrived: the main thread may be in a step that waits for one of them."""
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    found, lock, is_open = bytearray(), threading.Lock(), True

    def has_arrived() -> bool:
        with lock, suppress(BlockingIOError):
            if is_open:
                found.extend(os.read(reading, 64))
        return any(number in found for number in _CAUGHT)

    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    _watching.append(has_arrived)
    try:
        yield
    finally:
        _watching.remove(has_arrived)
        signal.set_wakeup_fd(before)
        with lock:
            is_open = False
            os.close(writing)
            os.close(reading)

"""A run that waits for its data while the store is away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError

#: Seconds between two attempts; each of them repeats its requests as `set_auth(retry=...)` says.
_PAUSE = 2.0
#: Seconds between two lines about it, for all threads together.
_SECONDS_A_LINE = 30.0

_Found = TypeVar("_Found")
_lock = threading.Lock()
_next_line = 0.0
_is_away = False


def _never() -> bool:
    return False


#: Says whether nobody wants the data any more.
_is_over: Callable[[], bool] = _never


def patiently(read: Callable[[], _Found]) -> _Found:
    """What `read` returns. While the store is away it is called again, for `--data_patience` seconds.

    Raises:
      OSError: That of the last attempt; at once if it is none that may pass.

    Example:
      >>> patiently(lambda: 3)
      3
    """
    started = time.monotonic()
    while True:
        try:
            found = read()
        except OSError as error:
            if not may_pass(error) or time.monotonic() - started >= seconds_of("data_patience") or _is_over():
                raise
            _tell(error)
            _pause()
        else:
            if _is_away:
                _tell_of_the_end()
            return found


@contextmanager
def ended_by(is_over: Callable[[], bool]) -> Iterator[None]:
    """Inside, waiting ends when `is_over` says so.

    Example:
      >>> with ended_by(lambda: True):
      ...     patiently(lambda: 3)
      3
    """
    global _is_over
    before, _is_over = _is_over, is_over
    try:
        yield
    finally:
        _is_over = before


def may_pass(error: BaseException) -> bool:
    """Whether a store that gave this answer, or none, may give another one later.

    Example:
      >>> may_pass(FileNotFoundError(2, 'gone'))
      False
    """
    response = getattr(error, "resp", None)
    # A damaged object stays so, however often it is asked for.
    return getattr(response, "code", "") != "Damaged" and bool(getattr(response, "may_pass", False))


def seconds_of(flag: str) -> float:
    """The value of a flag that says how long to wait.

    Example:
      >>> seconds_of('data_patience')
      300.0
    """
    seconds = FLAGS.get(flag)
    if not seconds >= 0:
        raise FlagError(f"--{flag}={seconds}: expected a number of seconds from 0.")
    return float(seconds)


def _pause() -> None:
    until = time.monotonic() + _PAUSE
    while time.monotonic() < until and not _is_over():
        time.sleep(0.1)


def _tell(error: OSError) -> None:
    global _is_away, _next_line
    with _lock:
        _is_away = True
        if time.monotonic() < _next_line:
            return
        _next_line = time.monotonic() + _SECONDS_A_LINE
    tf.logging.warning("Waiting for data, up to %g seconds (--data_patience): %s", seconds_of("data_patience"), error)


def _tell_of_the_end() -> None:
    global _is_away, _next_line
    with _lock:
        if not _is_away:
            return
        _is_away, _next_line = False, 0.0
    tf.logging.info("The store gives data again.")

"""Reads that wait while a store is unavailable, for the time that a flag sets."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from moxing.framework.file.errors import is_transient
from moxing.framework.flags import FLAGS, FlagError

#: Seconds between two attempts. Each attempt retries its requests as `set_auth(retry=...)` says.
_PAUSE = 2.0
#: Seconds between two log lines, for all threads together.
_LOG_INTERVAL = 30.0

_Result = TypeVar("_Result")
_log = logging.getLogger("tensorflow")
_lock = threading.Lock()
_next_log = 0.0
_is_unavailable = False


#: Functions that return whether nobody waits for the data any more.
_cancellations: list[Callable[[], bool]] = []


def retry_while_unavailable(read: Callable[[], _Result]) -> _Result:
    """Returns the result of `read`. While the store is unavailable, calls it again for `--data_patience` seconds.

    Raises:
      OSError: The error of the last attempt, or the first error that is not transient.

    Example:
      >>> retry_while_unavailable(lambda: 3)
      3
    """
    started = time.monotonic()
    while True:
        try:
            result = read()
        except OSError as error:
            waited = time.monotonic() - started
            if not is_transient(error) or waited >= seconds_flag("data_patience") or _is_cancelled():
                raise
            _log_unavailable(error)
            _pause()
        else:
            if _is_unavailable:
                _log_available()
            return result


def cancel_when(is_cancelled: Callable[[], bool]) -> None:
    """From now on, waiting ends as soon as `is_cancelled` returns True.

    Example:
      >>> cancel_when(lambda: False)
      >>> retry_while_unavailable(lambda: 3)
      3
    """
    _cancellations.append(is_cancelled)


def _is_cancelled() -> bool:
    return any(is_cancelled() for is_cancelled in _cancellations)


def seconds_flag(flag: str) -> float:
    """Returns the value of a flag that is a number of seconds.

    Example:
      >>> seconds_flag('data_patience')
      300.0
    """
    seconds = FLAGS.get(flag)
    if not seconds >= 0:
        raise FlagError(f"--{flag}={seconds}: expected a number of seconds from 0.")
    return float(seconds)


def _pause() -> None:
    until = time.monotonic() + _PAUSE
    while time.monotonic() < until and not _is_cancelled():
        time.sleep(0.1)


def _log_unavailable(error: OSError) -> None:
    global _is_unavailable, _next_log
    with _lock:
        _is_unavailable = True
        if time.monotonic() < _next_log:
            return
        _next_log = time.monotonic() + _LOG_INTERVAL
    _log.warning("Waiting for data, up to %g seconds (--data_patience): %s", seconds_flag("data_patience"), error)


def _log_available() -> None:
    global _is_unavailable, _next_log
    with _lock:
        if not _is_unavailable:
            return
        _is_unavailable, _next_log = False, 0.0
    _log.info("The store is available again.")

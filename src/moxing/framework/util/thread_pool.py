"""A thread pool that still works while the interpreter shuts down.

Scripts upload their result in an `atexit` handler. Python starts no threads then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


def is_shutting_down() -> bool:
    """Returns whether the main thread has ended, so that no thread can be started.

    Example:
      >>> is_shutting_down()
      False
    """
    return not threading.main_thread().is_alive()


class ThreadPool(Executor):
    """A `ThreadPoolExecutor` that calls the functions in the calling thread while the interpreter shuts down.

    Example:
      >>> with ThreadPool(2, 'example') as pool:
      ...     list(pool.map(abs, [-1, 2]))
      [1, 2]
    """

    def __init__(self, max_workers: int, thread_name_prefix: str = "") -> None:
        self._pool: Executor | None = None
        if is_shutting_down():
            return
        # The import, too, fails while the interpreter shuts down.
        from concurrent.futures import ThreadPoolExecutor

        self._pool = ThreadPoolExecutor(max_workers, thread_name_prefix=thread_name_prefix)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Starts `fn(*args, **kwargs)`."""
        if self._pool is not None:
            try:
                return self._pool.submit(fn, *args, **kwargs)
            except RuntimeError:
                # The pool may be older than the end of the main thread.
                if not is_shutting_down():
                    raise
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Waits for what was started, as `ThreadPoolExecutor`."""
        if self._pool is not None:
            self._pool.shutdown(wait, cancel_futures=cancel_futures)

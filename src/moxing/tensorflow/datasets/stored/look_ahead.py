"""Starts requests before their results are needed, in threads of its own.

TensorFlow has as many threads as the machine has cores: a request that waits in one of them would delay a step.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from moxing.framework.flags import FLAGS, FlagError

#: The smallest number of samples to request ahead: those of one call from TensorFlow.
_MIN_AHEAD = 64


def requests_at_once(num_readers: int = 1) -> int:
    """Returns the number of concurrent requests: the flag `data_requests`, or `num_readers` if that is more.

    Example:
      >>> requests_at_once(), requests_at_once(50)
      (32, 50)
    """
    count = FLAGS.get("data_requests")
    if count < 1:
        raise FlagError(f"--data_requests={count}: expected a number from 1.")
    return max(count, num_readers)


def requests_ahead(num_readers: int = 1) -> int:
    """Returns the number of samples to request ahead.

    Example:
      >>> requests_ahead(), requests_ahead(100)
      (64, 100)
    """
    return max(_MIN_AHEAD, requests_at_once(num_readers))


class RequestThreads:
    """A pool of threads that runs tasks in their order.

    Unlike the threads of `concurrent.futures`, they do not keep the process alive: a request may take a minute.

    Example:
      >>> RequestThreads(2).submit(pow, 2, 3).result()
      8
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]] | None]
        self._tasks = queue.SimpleQueue()
        self._started = 0
        self._lock = threading.Lock()
        weakref.finalize(self, _end, self._tasks, count).atexit = False

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Runs `function(*arguments)` as soon as a thread is free."""
        future: Future[Any] = Future()
        self._tasks.put((future, function, arguments))
        if self._started < self.count:
            with self._lock:
                if self._started < self.count:
                    self._started += 1
                    threading.Thread(target=_work, args=(self._tasks,), name="mox-request", daemon=True).start()
        return future


def _work(tasks: queue.SimpleQueue[Any]) -> None:
    while (task := tasks.get()) is not None:
        future, function, arguments = task
        try:
            result = function(*arguments)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)
        # Do not keep references to the last task while waiting for the next one.
        del task, future, function, arguments
        result = None


def _end(tasks: queue.SimpleQueue[Any], count: int) -> None:
    for _ in range(count):
        tasks.put(None)


class LookAhead:
    """Results by number, which can be started before they are taken.

    Args:
      start: starts the work for some distinct numbers and returns a future for each.
      most: the number of started results that may wait to be taken; if there are more, the oldest are dropped.

    Example:
      >>> threads = RequestThreads(2)
      >>> squares = LookAhead(lambda numbers: {number: threads.submit(pow, number, 2) for number in numbers}, 4)
      >>> squares.expect([1, 2, 3])
      >>> squares.take([2, 1, 2])
      [4, 1, 4]
    """

    def __init__(self, start: Callable[[list[int]], Mapping[int, Future[Any]]], most: int) -> None:
        self._start, self._most = start, most
        self._started: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()

    def expect(self, numbers: Iterable[int]) -> None:
        """Starts the results that are not started yet. Does not wait."""
        with self._lock:
            self._start_missing(numbers)
            # Results that nobody took, of a dataset that was not read to its end.
            for number in list(self._started)[: max(0, len(self._started) - self._most)]:
                del self._started[number]

    def take(self, numbers: Iterable[int]) -> list[Any]:
        """Waits for the results and returns them in the order of `numbers`; raises the exception of a failed one."""
        wanted = list(numbers)
        with self._lock:
            self._start_missing(wanted)
            futures = [self._started[number] for number in wanted]
            for number in set(wanted):
                del self._started[number]
        return [future.result() for future in futures]

    def _start_missing(self, numbers: Iterable[int]) -> None:
        missing = [number for number in dict.fromkeys(numbers) if number not in self._started]
        if missing:
            self._started.update(self._start(missing))

"""Requests that are under way before their answers are asked for, in threads of their own.

TensorFlow's threads are as many as the machine has cores: a request that waits in one of them would stop a step.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from moxing.framework.flags import FLAGS, FlagError

#: Samples that are asked for ahead, at least: as many as TensorFlow asks for with one call.
_LEAST_AHEAD = 64


def requests_at_once(num_readers: int = 1) -> int:
    """How many requests are to be under way: the flag `data_requests`, or `num_readers` if that is more.

    Example:
      >>> requests_at_once(), requests_at_once(50)
      (32, 50)
    """
    count = FLAGS.get("data_requests")
    if count < 1:
        raise FlagError(f"--data_requests={count}: expected a number from 1.")
    return max(count, num_readers)


def requests_ahead(num_readers: int = 1) -> int:
    """How many samples are asked for ahead of those that are waited for.

    Example:
      >>> requests_ahead(), requests_ahead(100)
      (64, 100)
    """
    return max(_LEAST_AHEAD, requests_at_once(num_readers))


class RequestThreads:
    """A number of threads that do what they are given, in the order in which it comes.

    They do not keep the process alive, unlike those of `concurrent.futures`: a request may wait for a minute.

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
        """Begins `function(*arguments)` as soon as a thread is free."""
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
        # What the last task was about is not to be kept while the next one is waited for.
        del task, future, function, arguments
        result = None


def _end(tasks: queue.SimpleQueue[Any], count: int) -> None:
    for _ in range(count):
        tasks.put(None)


class LookAhead:
    """Results by number, which can be begun before they are taken.

    Args:
      begin: begins the work for some numbers, each given once, and returns a future for each.
      kept: how many results that were begun may wait to be taken; more are forgotten, the oldest first.

    Example:
      >>> threads = RequestThreads(2)
      >>> squares = LookAhead(lambda numbers: {number: threads.submit(pow, number, 2) for number in numbers}, 4)
      >>> squares.expect([1, 2, 3])
      >>> squares.take([2, 1, 2])
      [4, 1, 4]
    """

    def __init__(self, begin: Callable[[list[int]], Mapping[int, Future[Any]]], kept: int) -> None:
        self._begin, self._kept = begin, kept
        self._begun: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()

    def expect(self, numbers: Iterable[int]) -> None:
        """Begins what is not begun yet; does not wait."""
        with self._lock:
            self._start(numbers)
            # Numbers that nobody came to take, of a data set that was left in the middle.
            for number in list(self._begun)[: max(0, len(self._begun) - self._kept)]:
                del self._begun[number]

    def take(self, numbers: Iterable[int]) -> list[Any]:
        """The results, in the order of `numbers`; waits for them, and raises what one of them raised."""
        wanted = list(numbers)
        with self._lock:
            self._start(wanted)
            futures = [self._begun[number] for number in wanted]
            for number in set(wanted):
                del self._begun[number]
        return [future.result() for future in futures]

    def _start(self, numbers: Iterable[int]) -> None:
        missing = [number for number in dict.fromkeys(numbers) if number not in self._begun]
        if missing:
            self._begun.update(self._begin(missing))

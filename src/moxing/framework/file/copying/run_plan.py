"""Runs a plan: with threads, and for very many files with worker processes that have threads of their own."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import as_completed
from dataclasses import dataclass

from moxing.framework.file.copying.copy_file import copy_file
from moxing.framework.file.copying.plan import CopyPlan, CopyTask
from moxing.framework.file.progress import advance, transfer_bar
from moxing.framework.util.thread_pool import ThreadPool, is_shutting_down

#: Fewer files are copied in the time that a process takes to start.
_FILES_PER_PROCESS = 500
_BATCH = 32
#: A larger file is copied in parts.
_LARGE = 16 << 20


@dataclass(frozen=True)
class CopyOptions:
    """How a plan is run. The names are those of `copy_parallel`.

    Example:
      >>> CopyOptions(threads=4).is_processing
      True
    """

    threads: int = 16
    is_processing: bool = True
    use_queue: bool = True


def run_plan(plan: CopyPlan, options: CopyOptions) -> None:
    """Creates the directories, then copies all files. The first failure stops the rest and is raised."""
    plan.make_directories()
    tasks = _order(plan.tasks, options.threads)
    # A local copy keeps the disk busy, not Python: threads are enough.
    processes = 1 if plan.is_local else _count_processes(len(tasks), options)
    with transfer_bar(plan.length, files=len(tasks)):
        if len(tasks) == 1:
            copy_file(tasks[0])
        elif processes <= 1:
            run_in_threads(tasks, options.threads)
        else:
            batches = deque(tasks[start : start + _BATCH] for start in range(0, len(tasks), _BATCH))
            _run_in_processes(batches, processes, options)


def _order(tasks: list[CopyTask], threads: int) -> list[CopyTask]:
    """Puts large files first, since they take longest, and divides the requests in flight among them."""
    large = sum((task.length or 0) > _LARGE for task in tasks)
    concurrency = part_concurrency(threads // max(1, large))
    ordered = sorted(tasks, key=lambda task: task.length or 0, reverse=True) if large else tasks
    return [task._replace(concurrency=concurrency) for task in ordered]


def part_concurrency(threads: int = CopyOptions.threads) -> int:
    """Returns how many parts of a large file are in flight at a time: as scripts have set it, at most `threads`.

    Example:
      >>> part_concurrency(), part_concurrency(threads=3)
      (8, 3)
    """
    from moxing.framework.file import file_io

    if file_io._LARGE_FILE_METHOD == 2:
        return 1
    return max(1, min(int(file_io._LARGE_FILE_TASK_NUM), threads))


def _count_processes(files: int, options: CopyOptions) -> int:
    from moxing.framework.file import file_io

    if not options.is_processing or not sys.executable or is_shutting_down():
        return 1
    # A process with its threads keeps about two cores busy: its own and one for the network stack.
    cores = (os.cpu_count() or 1) // 2
    return min(int(file_io._NUMBER_OF_PROCESSES), cores, files // _FILES_PER_PROCESS, options.threads)


def run_in_threads(tasks: list[CopyTask], threads: int) -> None:
    """Copies with threads of this process."""
    if not tasks:
        return
    if is_shutting_down():
        for task in tasks:
            copy_file(task)
            advance(0, files=1)
        return
    with ThreadPool(min(threads, len(tasks)), thread_name_prefix="mox-copy") as pool:
        futures = [pool.submit(copy_file, task) for task in tasks]
        try:
            for future in as_completed(futures):
                future.result()
                advance(0, files=1)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _run_in_processes(batches: deque[list[CopyTask]], count: int, options: CopyOptions) -> None:
    """Copies with worker processes. This process copies, too, while the workers are still starting."""
    from moxing.framework.file.copying.worker import CopyWorker

    failures: list[BaseException] = []
    queue = _BatchQueue(batches, failures, count, options.use_queue)
    threads = max(1, options.threads // count)
    workers = [CopyWorker(threads) for _ in range(count - 1)]
    feeders = [
        threading.Thread(target=worker.feed, args=(queue.taker(number), failures), name="mox-feed", daemon=True)
        for number, worker in enumerate(workers, 1)
    ]
    try:
        for feeder in feeders:
            feeder.start()
        take = queue.taker(0)
        try:
            while batch := take():
                run_in_threads(batch, threads)
        except Exception as error:
            failures.append(error)
        for feeder in feeders:
            feeder.join()
    except BaseException:
        # Interrupted here or while waiting for the workers.
        for worker in workers:
            worker.kill()
        raise
    finally:
        for feeder in feeders:
            if feeder.is_alive():
                feeder.join()
        for worker in workers:
            worker.close()
    if failures:
        raise failures[0]


class _BatchQueue:
    """Hands out batches: to the first that asks, or to each process its share. After a failure there are no more."""

    def __init__(
        self, batches: deque[list[CopyTask]], failures: list[BaseException], count: int, use_queue: bool
    ) -> None:
        self._failures = failures
        self._queues = [batches] * count if use_queue else [deque(list(batches)[n::count]) for n in range(count)]

    def taker(self, number: int) -> Callable[[], list[CopyTask] | None]:
        """Returns a function that returns the next batch of a process, None if there is none."""

        def take() -> list[CopyTask] | None:
            try:
                return None if self._failures else self._queues[number].popleft()
            except IndexError:
                return None

        return take

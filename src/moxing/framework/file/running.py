"""Many copies at once: threads, and for very many files processes with threads of their own."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from moxing.framework.file.copying import CopyTask, copy_file
from moxing.framework.file.progress import advance, transfer_bar

#: Fewer are copied in the time that a process takes to start.
_FILES_PER_PROCESS = 500
_BATCH = 32
#: A file above this is copied in parts.
_LARGE = 16 << 20


@dataclass(frozen=True)
class CopyOptions:
    """How a directory is copied.

    Example:
      >>> CopyOptions(threads=4).is_processing
      True
    """

    threads: int = 16
    is_processing: bool = True
    use_queue: bool = True


def run_tasks(tasks: list[CopyTask], options: CopyOptions) -> None:
    """Copies everything. The first failure stops the rest and is raised."""
    tasks = _share_out(tasks, options.threads)
    count = _count_processes(len(tasks), options)
    batches = deque(tasks[start : start + _BATCH] for start in range(0, len(tasks), _BATCH))
    with transfer_bar(sum(task.length for task in tasks), files=len(tasks)):
        if count <= 1:
            run_in_threads(tasks, options.threads)
        else:
            _run_in_processes(batches, count, options)


def _share_out(tasks: list[CopyTask], threads: int) -> list[CopyTask]:
    """Large files first, since they take longest, each with its share of the requests that may be under way."""
    large = sum(task.length > _LARGE for task in tasks)
    at_once = parts_at_once(threads // max(1, large))
    ordered = sorted(tasks, key=lambda task: task.length, reverse=True) if large else tasks
    return [task._replace(at_once=at_once) for task in ordered]


def parts_at_once(threads: int = CopyOptions.threads) -> int:
    """How many parts of a large file are under way at a time, as scripts have set it and with so many threads at most.

    Example:
      >>> parts_at_once(), parts_at_once(threads=3)
      (8, 3)
    """
    from moxing.framework.file import file_io

    if file_io._LARGE_FILE_METHOD == 2:
        return 1
    return max(1, min(int(file_io._LARGE_FILE_TASK_NUM), threads))


def _count_processes(files: int, options: CopyOptions) -> int:
    from moxing.framework.file import file_io

    if not options.is_processing or not sys.executable:
        return 1
    # One process with its threads keeps about two processors busy, its own and that of the system's network.
    processors = (os.cpu_count() or 1) // 2
    return min(int(file_io._NUMBER_OF_PROCESSES), processors, files // _FILES_PER_PROCESS, options.threads)


def run_in_threads(tasks: list[CopyTask], threads: int) -> None:
    """Copies with the threads of this process."""
    if not tasks:
        return
    with ThreadPoolExecutor(min(threads, len(tasks)), thread_name_prefix="mox-copy") as pool:
        futures = [pool.submit(copy_file, task) for task in tasks]
        try:
            for future in as_completed(futures):
                future.result()
                advance(0, files=1)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _run_in_processes(batches: deque[list[CopyTask]], count: int, options: CopyOptions) -> None:
    """This process works, too; it begins at once, while the others are still starting."""
    from moxing.framework.file.copy_worker import CopyWorker

    failures: list[BaseException] = []
    take = _Taker(batches, failures, count, options.use_queue)
    threads = max(1, options.threads // count)
    workers = [CopyWorker(threads) for _ in range(count - 1)]
    feeders = [
        threading.Thread(target=worker.feed, args=(take.source(number), failures), name="mox-feed", daemon=True)
        for number, worker in enumerate(workers, 1)
    ]
    try:
        for feeder in feeders:
            feeder.start()
        own = take.source(0)
        try:
            while batch := own():
                run_in_threads(batch, threads)
        except Exception as error:
            failures.append(error)
        for feeder in feeders:
            feeder.join()
    except BaseException:
        # Interrupted, here or while the others were waited for.
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


class _Taker:
    """Hands out batches: to whoever asks first, or to each process its share. After a failure there are no more."""

    def __init__(
        self, batches: deque[list[CopyTask]], failures: list[BaseException], count: int, use_queue: bool
    ) -> None:
        self._failures = failures
        self._queues = [batches] * count if use_queue else [deque(list(batches)[n::count]) for n in range(count)]

    def source(self, number: int) -> Callable[[], list[CopyTask] | None]:
        """A function that returns the next batch of a process, None when there is none."""

        def take() -> list[CopyTask] | None:
            try:
                return None if self._failures else self._queues[number].popleft()
            except IndexError:
                return None

        return take

"""Scans TFRecord files for their records, several files in parallel, with a progress bar."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

from moxing.framework.util.terminal import has_terminal
from moxing.tensorflow.datasets.tfrecord.record_files import RecordScan, scan

_SCAN_THREADS = 16
_SECONDS_BEFORE_BAR = 1.0
_SECONDS_BETWEEN_UPDATES = 0.2


class _Stopped(Exception):
    """Ends the running scans after one has failed or the user has interrupted."""


def scan_all(
    sizes: Mapping[str, int],
    show_progress: bool,
    scan_one: Callable[[str, Callable[[int], object]], RecordScan] | None = None,
    threads: int = _SCAN_THREADS,
) -> dict[str, RecordScan]:
    """Scans files in parallel, with a progress bar if it takes long.

    Args:
      sizes: the files with their sizes.
      show_progress: whether to show a progress bar.
      scan_one: scans one file, by default `scan`; its second argument is a function to report scanned bytes to.
      threads: the number of files to scan in parallel.
    """
    total = sum(sizes.values())
    lock, stop, done = threading.Lock(), threading.Event(), 0

    def advance(count: int) -> None:
        nonlocal done
        if stop.is_set():
            raise _Stopped
        with lock:
            done += count

    with ThreadPoolExecutor(min(threads, len(sizes)), "moxing-scan") as pool:
        try:
            futures = {path: pool.submit(scan_one or scan, path, advance) for path in sizes}
            state = wait(futures.values(), _SECONDS_BEFORE_BAR, FIRST_EXCEPTION)
            if state.not_done and show_progress and has_terminal():
                with _progress_bar(total) as show:
                    _wait_showing(futures.values(), lambda: show(done))
            wait(futures.values(), None, FIRST_EXCEPTION)
            _raise_first(futures.values())
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
    return {path: future.result() for path, future in futures.items()}


def _wait_showing(futures: Collection[Future[RecordScan]], show: Callable[[], object]) -> None:
    pending = set(futures)
    while pending and not any(future.done() and future.exception() for future in futures):
        pending = wait(pending, _SECONDS_BETWEEN_UPDATES, FIRST_EXCEPTION).not_done
        show()


def _raise_first(futures: Collection[Future[RecordScan]]) -> None:
    for future in futures:
        if future.done():
            future.result()


@contextmanager
def _progress_bar(total: int) -> Iterator[Callable[[int], object]]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [TextColumn("[bold]{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("Counting records", total=total)
        yield lambda done: display.update(task, completed=min(done, total))

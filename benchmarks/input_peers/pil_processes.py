"""Pillow in one process per core; each builds whole batches in shared memory. Argument: `textbook` or `fused`."""

from __future__ import annotations

import multiprocessing
import os
import random
from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory

import numpy as np
from common import BATCH, SIDE, arguments, listing, report
from pil_image import sample

SHAPE = (BATCH, SIDE, SIDE, 3)


def slot_view(memory: SharedMemory, slot: int) -> np.ndarray:
    return np.ndarray(SHAPE, np.float32, memory.buf, offset=slot * int(np.prod(SHAPE)) * 4)


def work(memory: SharedMemory, tasks, done, fused: bool) -> None:
    """Run a worker: fill the requested slots with the requested files until there are no more requests."""
    for slot, files, labels in iter(tasks.get, None):
        view = slot_view(memory, slot)
        for file, place in zip(files, view, strict=True):
            sample(file, fused, place)
        done.put((slot, labels))


def endless(samples: list[tuple[str, int]]) -> Iterator[tuple[list[str], np.ndarray]]:
    """Yield files and labels of batches without end, reshuffled every epoch."""
    while True:
        random.shuffle(samples)
        for start in range(0, len(samples) - BATCH + 1, BATCH):
            files, labels = zip(*samples[start : start + BATCH], strict=True)
            yield list(files), np.array(labels)


def batches(memory: SharedMemory, tasks, done, slots: int, work_list: Iterator) -> Iterator:
    """Yield batches as views into the shared memory, valid until the next one is requested."""
    for slot in range(slots):
        tasks.put((slot, *next(work_list)))
    while True:
        # Without the timeout, a dead worker would block forever.
        slot, labels = done.get(timeout=120)
        yield slot_view(memory, slot), labels
        tasks.put((slot, *next(work_list)))


def main() -> None:
    (style, *_), folder, images = arguments()
    workers = os.cpu_count() or 1
    slots = 3 * workers  # two prefetched batches per worker, as in PyTorch, and those in use
    memory = SharedMemory(create=True, size=slots * int(np.prod(SHAPE)) * 4)
    tasks, done = multiprocessing.Queue(), multiprocessing.Queue()
    processes = [
        multiprocessing.Process(target=work, args=(memory, tasks, done, style == "fused"), daemon=True)
        for _ in range(workers)
    ]
    for process in processes:
        process.start()
    try:
        work_list = endless(list(zip(*listing(folder, "jpeg"), strict=True)))
        report(batches(memory, tasks, done, slots, work_list), images)
    finally:
        for process in processes:
            process.terminate()
            process.join()
        memory.unlink()


if __name__ == "__main__":
    main()

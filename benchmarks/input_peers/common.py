"""Shared by the input programs: the task, the command line, the clock."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

BATCH = 64
SIDE = 224
SHORTEST, LONGEST = 256, 512  # range of the short side after the resize, inclusive
MEANS = [123.68, 116.78, 103.94]
WARM_UP = 512
TICK = os.sysconf("SC_CLK_TCK")


def arguments() -> tuple[list[str], Path, int]:
    """Return the arguments of the command line, the data folder, and the number of timed images."""
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    options = dict(word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("--"))
    return words, Path(options["data"]), int(options["images"])


def listing(folder: Path, kind: str) -> tuple[list[str], list[int]]:
    """Return the files of `kind` ('jpeg' or 'decoded') and their labels."""
    classes = sorted(path for path in (folder / kind).iterdir() if path.is_dir())
    found = [(str(path), label) for label, name in enumerate(classes) for path in sorted(name.iterdir())]
    return [path for path, _ in found], [label for _, label in found]


def process_tree() -> list[int]:
    """Return the ids of this process and all its descendants, from Linux's /proc."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # the process has ended meanwhile
    tree = [os.getpid()]
    for process in tree:
        tree += [child for child, parent in parents.items() if parent == process]
    return tree


def cpu_seconds() -> float:
    """Return user and system time of this process and its workers, including those that have ended."""
    total = 0
    for process in process_tree():
        try:
            total += sum(map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / TICK


def resident_megabytes() -> float:
    """Return the memory of this process and its workers; shared pages count once per process."""
    pages = 0
    for process in process_tree():
        try:
            pages += int(Path(f"/proc/{process}/statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def take(batches: Iterator, images: int) -> None:
    """Fetch batches and check only their shape: this benchmark measures input alone."""
    for _ in range(images // BATCH):
        pictures, labels = next(batches)
        if tuple(pictures.shape) != (BATCH, SIDE, SIDE, 3) or "float32" not in str(pictures.dtype):
            raise SystemExit(f"a batch is {pictures.dtype} {tuple(pictures.shape)}")
        if len(labels) != BATCH:
            raise SystemExit(f"a batch has {len(labels)} labels")


def report(batches: Iterator, images: int, warm_up: int = WARM_UP) -> None:
    """Warm up, then time `images`; print images per second and CPU milliseconds per image."""
    take(batches, warm_up)
    cpu, started = cpu_seconds(), time.perf_counter()
    take(batches, images)
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu
    print(f"@{images / seconds} {cpu * 1e3 / images}", flush=True)


def report_memory(batches: Iterator, epoch: int, epochs: int = 20) -> None:
    """Print the resident megabytes after each epoch of `epoch` images."""
    sizes = []
    for _ in range(epochs):
        take(batches, epoch)
        sizes.append(resident_megabytes())
    print("@" + " ".join(f"{size:.1f}" for size in sizes), flush=True)

"""Overhead of `mox.file.shift` on a local `open` and `os.path.exists`: prints microseconds per call as JSON."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

import moxing as mox

#: Short blocks, so that other load on the machine affects both variants equally.
CALLS = 2_000
TURNS = 20


def open_and_close(path: str) -> None:
    """Open and close a file, as scripts do."""
    with open(path, "rb"):
        pass


def exists(path: str) -> None:
    """Check whether a file exists."""
    os.path.exists(path)


def microseconds(call: Callable[[str], None], path: str) -> float:
    """Return the mean time of a call."""
    started = time.perf_counter()
    for _ in range(CALLS):
        call(path)
    return (time.perf_counter() - started) / CALLS * 1e6


def main() -> None:
    rounds = int(sys.argv[1])
    results: dict[str, dict[str, list[float]]] = {}
    with tempfile.NamedTemporaryFile() as file:
        for name, call in (("open", open_and_close), ("os.path.exists", exists)):
            plain, shifted = [], []
            microseconds(call, file.name)
            for _ in range(rounds * TURNS):
                plain.append(microseconds(call, file.name))
                mox.file.shift("os", "mox")
                shifted.append(microseconds(call, file.name))
                mox.file.shift("mox", "os")
            added = [after - before for before, after in zip(plain, shifted, strict=True)]
            results[name] = {"plain": plain, "shifted": shifted, "added": added}
            print(f"{name}: {statistics.median(added):.2f}", file=sys.stderr)
    print("@" + json.dumps(results))


if __name__ == "__main__":
    main()

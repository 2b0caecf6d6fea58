"""What `mox.file.shift` adds to a local `open` and to `os.path.exists`: prints microseconds a call as JSON."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

import moxing as mox

#: Short turns, so that other work on the machine meets both alike.
CALLS = 2_000
TURNS = 20


def open_and_close(path: str) -> None:
    """One open, as scripts write it."""
    with open(path, "rb"):
        pass


def exists(path: str) -> None:
    """One question."""
    os.path.exists(path)


def microseconds(call: Callable[[str], None], path: str) -> float:
    """The time of a call, a mean of many."""
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

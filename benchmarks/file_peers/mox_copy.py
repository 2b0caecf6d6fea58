"""One copy with `mox.file`: `mox_copy.py many|large SOURCE TARGET`. Prints the seconds that the call took."""

from __future__ import annotations

import sys
import time


def main() -> None:
    import moxing as mox

    _, source, target = sys.argv[1:]
    started = time.perf_counter()
    mox.file.copy_parallel(source, target)
    print(f"@{time.perf_counter() - started:.6f}")


if __name__ == "__main__":
    main()

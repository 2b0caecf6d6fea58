"""The files that tests of `moxing file` list, show and remove."""

from __future__ import annotations

FILES = {"a.txt": "hello", "b.jpg": "123", "sub/c.txt": "c" * 1500, "sub/deep/d.txt": "d", "sub-twin/e.txt": "e"}


def names(root, lines):
    return [line.removeprefix(f"{root}/") for line in lines]

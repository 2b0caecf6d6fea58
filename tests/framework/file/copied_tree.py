"""A tree with hard names to copy, and what is in a copy of it."""

from __future__ import annotations

import os

import moxing as mox

NAMES = ["a.txt", "sub/b c.txt", "sub/深/数据.txt", "sub/🚀.bin", "foo", "foo-bar", "-rf", "#x", "%41", "back\\slash"]


def contents(folder):
    names = mox.file.list_directory(folder, recursive=True, skip_dir=True)
    return {name: mox.file.read(os.path.join(folder, name)) for name in names}

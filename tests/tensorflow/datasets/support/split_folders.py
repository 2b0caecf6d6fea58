"""Folders for the tests of splits, and what becomes of them."""

import itertools
import os
import shutil

from moxing.tensorflow.datasets.tools import split as split_module

SPEC = {"train": 0.9, "eval": 0.1}


MARKER = ".moxing_split.json"


def put(root, *names):
    for name in names:
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(os.fsencode(name))


def tree(root):
    return {
        os.path.relpath(os.path.join(folder, name), root)
        for folder, _, names in os.walk(root)
        for name in names
        if name != "labels.txt" and name != MARKER
    }


def assignment(root):
    """Split by file."""
    return {name.partition("/")[2]: name.partition("/")[0] for name in tree(root)}


def hidden(root):
    return {name for name in os.listdir(root) if name.startswith(".")}


def failing(monkeypatch, after):
    copy2, counter = shutil.copy2, itertools.count()

    def copy(source, target):
        if next(counter) >= after:
            raise OSError("disk is full")
        copy2(source, target)

    monkeypatch.setattr(split_module, "_CHUNK", 1)
    monkeypatch.setattr(shutil, "copy2", copy)


def count_copies(monkeypatch):
    copy2, copied = shutil.copy2, []

    def copy(source, target):
        copied.append(source)
        copy2(source, target)

    monkeypatch.setattr(shutil, "copy2", copy)
    return copied

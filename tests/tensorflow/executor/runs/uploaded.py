"""Helpers for tests of uploads: the contents of the store."""

from __future__ import annotations

import time

import moxing.tensorflow as mox
from moxing.tensorflow.executor.checkpoints.files import marker_text


def wait_for(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.02)


def named(url):
    """The valid checkpoints, oldest first."""
    try:
        text = mox.file.read(url + "/checkpoint")
    except FileNotFoundError:
        return []
    return [line.split('"')[1] for line in text.splitlines() if line.startswith("all_")]


def step(name):
    return int(name.rpartition("-")[2])


def puts(proxy):
    return [target.rpartition("/")[2] for method, target in proxy.requests if method in ("PUT", "POST")]


def save_into(stage, number, content):
    """Writes a checkpoint like a training; the marker names all checkpoints of the directory."""
    for ending in (".data-00000-of-00001", ".moxing.json", ".index"):
        (stage / f"model.ckpt-{number}{ending}").write_bytes(content)
    numbers = sorted({step(path.stem) for path in stage.glob("*.index")})
    mox.file.write(str(stage / "checkpoint"), marker_text([f"model.ckpt-{each}" for each in numbers]))


def stages(temporary):
    """The local directories of runs."""
    return sorted(temporary.glob("moxing-*"))


def names(url):
    return sorted(mox.file.list_directory(url, recursive=True, skip_dir=True))


def checkpoints(url):
    """The steps that the marker names."""
    text = mox.file.read(url + "/checkpoint")
    return [int(line.split("-")[-1].rstrip('"')) for line in text.splitlines() if line.startswith("all_")]


def download(url, target):
    mox.file.copy_parallel(url, str(target))
    return target

"""Fixtures of the tests of records."""

from __future__ import annotations

import logging
import os

import pytest

from moxing.tensorflow.datasets.tfrecord import parallel_scan


@pytest.fixture(autouse=True)
def private_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def log(monkeypatch):
    """What TensorFlow's logger was told, as (level, text)."""
    lines: list[tuple[str, str]] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append((record.levelname, record.getMessage()))  # type: ignore[method-assign]
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield lines
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.fixture
def scans(monkeypatch):
    """The names of the files that are scanned."""
    names: list[str] = []
    original = parallel_scan.scan

    def counting(path, progress):
        names.append(os.path.basename(path))
        return original(path, progress)

    monkeypatch.setattr(parallel_scan, "scan", counting)
    return names

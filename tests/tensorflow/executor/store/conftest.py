"""Fixtures of the tests of runs on a store."""

from __future__ import annotations

import contextlib
import logging
import tempfile

import pytest

from moxing.framework.file.urls import find_remote
from moxing.tensorflow.executor.store import mirror as mirror_module
from moxing.tensorflow.executor.store.mirror import Mirror
from moxing.tensorflow.executor.store.uploads import UploadError


@pytest.fixture
def stage(tmp_path):
    (tmp_path / "stage").mkdir()
    return tmp_path / "stage"


@pytest.fixture
def mirror(s3_folder, tmp_path, stage):
    """A running mirror of a directory that the test writes into."""
    mirror = Mirror(str(stage), str(tmp_path / "links"), find_remote(s3_folder, "url"), {})
    mirror.start()
    yield mirror
    mirror.cancel()
    with contextlib.suppress(UploadError):
        mirror.finish()


@pytest.fixture(autouse=True)
def quick_uploads(monkeypatch):
    """The thread looks for changes often, and the last attempts follow each other soon."""
    monkeypatch.setattr(mirror_module, "_SCAN_PERIOD", 0.05)
    monkeypatch.setattr(mirror_module, "_FINAL_PAUSE", 0.1)


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The temporary directory of the test."""
    directory = tmp_path / "tmp"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    yield directory


@pytest.fixture
def lines(caplog):
    """The log lines so far."""
    caplog.set_level(logging.INFO)
    return lambda: [record.getMessage() for record in caplog.records]

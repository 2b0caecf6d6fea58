"""Fixtures of the tests of Estimators on a store."""

from __future__ import annotations

import tempfile

import pytest

from moxing.tensorflow.estimator import model_dir
from moxing.tensorflow.executor.store import mirror


@pytest.fixture
def stages(s3_folder, tmp_path, monkeypatch):
    """The directory of the stages, which are removed with the test; uploads are quick."""
    monkeypatch.setattr(mirror, "_SCAN_PERIOD", 0.05)
    monkeypatch.setattr(mirror, "_FINAL_PAUSE", 0.1)
    directory = tmp_path / "tmp"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    yield directory
    model_dir.close_stages()
    assert not list(directory.glob("moxing-*"))

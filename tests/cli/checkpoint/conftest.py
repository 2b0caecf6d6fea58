"""Every test has a directory of its own."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path

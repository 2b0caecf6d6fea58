"""What all tests share: TensorFlow started as users start it, flags as in a new process, real data if there is any."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# A test's log lines stay its own, and two test processes share two cores.
os.environ.setdefault("MOX_SILENT_MODE", "1")

from moxing.framework.flags import FLAGS  # noqa: E402
from moxing.tf1 import environment  # noqa: E402

environment.import_tensorflow()

ROOT = Path(__file__).resolve().parent
REAL_DATA = ROOT.parent / "shared" / "data"


@pytest.fixture(autouse=True)
def fresh_flags(monkeypatch: pytest.MonkeyPatch):
    """Every test begins with an empty command line."""
    monkeypatch.setattr(sys, "argv", ["script.py"])
    FLAGS.reset()
    yield
    FLAGS.reset()


@pytest.fixture
def real_data() -> Path:
    """The directory of real data sets; tests that use it carry the mark `realdata`."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"no real data sets at {REAL_DATA}")
    return REAL_DATA

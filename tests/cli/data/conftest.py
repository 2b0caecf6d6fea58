"""The folder of the tests of `moxing data`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from flower_folder import encoded, put  # noqa: E402


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """`flowers` in the current directory: 2 classes of 10 images."""
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "flowers", {f"{name}/{i}.jpg": encoded("JPEG") for name in ("daisy", "roses") for i in range(10)})
    return tmp_path / "flowers"

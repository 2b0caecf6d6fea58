"""The directory that tests copy."""

from __future__ import annotations

import pytest
from copied_tree import NAMES


@pytest.fixture
def src(tmp_path):
    folder = tmp_path / "src"
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "empty").mkdir()
    return folder

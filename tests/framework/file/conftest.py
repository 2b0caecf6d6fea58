"""Makes the modules beside the tests importable, and keeps what `set_auth` was told inside a test."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def own_settings():
    """A test that calls `set_auth` leaves nothing behind."""
    from moxing.framework.file.auth import get_settings, restore_settings

    before = get_settings()
    yield
    restore_settings(before)

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


@pytest.fixture
def large(s3_folder):
    """The url of an object of several parts."""
    from large_object import LARGE

    import moxing as mox

    mox.file.write(f"{s3_folder}/large", LARGE, binary=True)
    return f"{s3_folder}/large"

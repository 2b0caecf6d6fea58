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
def proxy(store, s3_folder, own_settings):
    """A proxy in front of the store, with `mox.file` led to it; faults are still to be asked for."""
    import fault_proxy

    import moxing as mox

    with fault_proxy.FaultProxy(store.port) as running:
        mox.file.set_auth(server=running.endpoint, retry=4, retry_wait=0.005, client_timeout=20)
        yield running

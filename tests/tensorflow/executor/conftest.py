"""Makes the modules beside the tests importable; pytest's importlib mode leaves sys.path alone."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
# The proxy in front of the store.
sys.path.insert(1, str(Path(__file__).parents[2] / "framework" / "file"))


@pytest.fixture
def proxy(store, s3_folder, monkeypatch):
    """A proxy in front of the store, with the environment leading to it; faults are still to be asked for."""
    from fault_proxy import FaultProxy

    from moxing.framework import file

    with FaultProxy(store.port) as running:
        monkeypatch.setenv("S3_ENDPOINT", running.endpoint)
        file.set_auth(retry=1, retry_wait=0.005)
        yield running

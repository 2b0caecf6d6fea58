"""Data sets on a real store, and a proxy in front of it that counts and breaks requests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[3] / "framework" / "file"))


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """Every test is on a machine of its own, without an index or a file from before; call it for one more."""
    from moxing.tensorflow.datasets.stored import data_cache

    def move(number: int) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"user-cache-{number}"))
        monkeypatch.setenv("DLS_LOCAL_CACHE_PATH", str(tmp_path / f"local-{number}"))
        data_cache._temporary_cache.cache_clear()
        data_cache._cache_in.cache_clear()

    move(0)
    yield move
    data_cache._temporary_cache.cache_clear()
    data_cache._cache_in.cache_clear()


@pytest.fixture
def proxy(store, s3_folder):
    """The store behind a proxy; `mox.file` is led to it until the end of the test."""
    import fault_proxy

    import moxing as mox
    from moxing.framework.file.auth import get_settings, restore_settings

    before = get_settings()
    with fault_proxy.FaultProxy(store.port) as running:
        mox.file.set_auth(server=running.endpoint, retry=2, retry_wait=0.005, client_timeout=20)
        yield running
    restore_settings(before)

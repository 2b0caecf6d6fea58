"""Makes the helper modules of these tests importable; fixtures of tests with a real object store."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Every test is on a machine of its own, without an index or a file from before; call it for one more."""
    from moxing.framework.flags import FLAGS
    from moxing.tensorflow.datasets.stored import data_cache

    def move(number: int) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"user-cache-{number}"))
        monkeypatch.setenv("DLS_LOCAL_CACHE_PATH", str(tmp_path / f"local-{number}"))
        data_cache._temporary_cache.cache_clear()
        data_cache._cache_in.cache_clear()

    move(0)
    # A test in which the store fails expects the error at once.
    FLAGS.set("data_patience", 0)
    yield move
    data_cache._temporary_cache.cache_clear()
    data_cache._cache_in.cache_clear()


@pytest.fixture
def proxy(proxy):
    """The proxy in front of the store, for requests that are repeated twice."""
    from moxing.framework import file

    file.set_auth(retry=2)
    return proxy


@pytest.fixture
def url(folder, s3_folder) -> str:
    """The url of a copy of the test's own `folder`."""
    from moxing.framework import file

    file.copy_parallel(str(folder), s3_folder)
    return s3_folder

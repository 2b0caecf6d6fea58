"""The defaults of the backend interface, on a file system of fsspec, which overrides none of them."""

import pytest

import moxing as mox
from moxing.framework.file.urls import find_remote


@pytest.fixture
def remote():
    pytest.importorskip("fsspec")
    mox.file.write("memory://backend/a", "0123456789")
    yield find_remote("memory://backend/a", "url")
    mox.file.remove("memory://backend", recursive=True)


def test_a_range_of_a_file(remote):
    assert remote.backend.read_range(remote.path, 2, 5) == b"234"
    assert remote.backend.read_range("backend/none", 0, 1) is None


def test_a_file_without_a_version(remote):
    assert remote.backend.read_version(remote.path) == (b"0123456789", "")
    assert remote.backend.read_version("backend/none") is None
    entry = remote.backend.describe(remote.path)
    assert (entry.relative, entry.length, entry.version) == ("a", 10, "")
    assert remote.backend.describe("backend") is None
    assert not remote.backend.matches_version("", __file__)


def test_files_of_one_backend_are_copied_there(remote):
    other = find_remote("memory://elsewhere/b", "url")
    assert remote.backend.can_copy_to(remote.path, other.backend, other.path)

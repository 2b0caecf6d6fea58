"""Schemes that fsspec serves."""

import os

import pytest

import moxing as mox


def test_file_systems_of_several_hosts_and_names():
    """The scheme alone does not say which file system it is."""
    fsspec = pytest.importorskip("fsspec")
    from fsspec.implementations.memory import MemoryFileSystem

    class Hosts(MemoryFileSystem):
        stores = {}  # noqa: RUF012

        def __init__(self, host="", **options):
            super().__init__(**options)
            self.store, self.pseudo_dirs = self.stores.setdefault(host, {}), [""]

        @classmethod
        def _strip_protocol(cls, path):
            return "/" + path.partition("://")[2].partition("/")[2] if "://" in path else path

        @staticmethod
        def _get_kwargs_from_urls(path):
            return {"host": path.partition("://")[2].partition("/")[0]}

    for scheme in ("moxhost", "moxhosts"):
        fsspec.register_implementation(scheme, Hosts, clobber=True)
    mox.file.write("moxhost://one/a", "of one")
    mox.file.write("moxhost://one/b", "kept")
    mox.file.copy("moxhost://one/a", "moxhost://two/b")
    assert mox.file.read("moxhost://one/b") == "kept"
    assert mox.file.read("moxhost://two/b") == "of one"
    mox.file.rename("moxhost://two/b", "moxhosts://two/b")
    mox.file.rename("moxhosts://two/b", "moxhost://two/c")
    assert mox.file.read("moxhosts://two/c") == "of one"
    assert not mox.file.exists("moxhost://two/b")
    folder = os.urandom(8).hex()
    mox.file.write(f"memory://{folder}/a", "kept")
    mox.file.rename(f"memory://{folder}/a", f"memory:///{folder}/a")
    assert mox.file.read(f"memory://{folder}/a") == "kept"

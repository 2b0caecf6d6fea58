"""A directory on the disk or in the store, and a way to run `moxing file`."""

from __future__ import annotations

import os

import pytest
from stored_tree import FILES

import moxing as mox
from moxing.cli import main


@pytest.fixture(params=["disk", "store"])
def root(request, tmp_path):
    """A directory with a few files, on the disk or in the store."""
    root = str(tmp_path / "data") if request.param == "disk" else f"{request.getfixturevalue('s3_folder')}/data"
    for name, content in FILES.items():
        if request.param == "disk":
            mox.file.make_dirs(os.path.dirname(f"{root}/{name}"))
        mox.file.write(f"{root}/{name}", content)
    return root


@pytest.fixture
def run(capfd):
    """Runs a command; returns its lines, or the line of its error."""

    def call(*words, code=0):
        assert main.main(["file", *words]) == code
        out, err = capfd.readouterr()
        if code:
            assert out == ""
            assert err.count("\n") == 1
            assert "Traceback" not in err
            return err.strip()
        assert err == ""
        return out.splitlines()

    return call

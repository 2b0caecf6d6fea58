"""Directories of files, on a disk or a store, and commands about them."""

import os

import moxing as mox
from moxing.cli import main

WAYS = [("disk", "disk"), ("disk", "store"), ("store", "disk"), ("store", "store")]


def put(root, files):
    for name, content in files.items():
        if "://" not in root:
            mox.file.make_dirs(os.path.dirname(f"{root}/{name}"))
        mox.file.write(f"{root}/{name}", content)


def contents(root):
    return {name: mox.file.read(f"{root}/{name}") for name in mox.file.list_directory(root, True, skip_dir=True)}


def source_and_target(request, tmp_path, files):
    """A directory with files, and one to copy into, which is not there, on the places that `request.param` names."""
    roots = {"disk": str(tmp_path)}
    if "store" in request.param:
        roots["store"] = request.getfixturevalue("s3_folder")
    source, target = (roots[kind] for kind in request.param)
    put(f"{source}/from", files)
    return f"{source}/from", f"{target}/to"


def run_file(capfd, command, *words, code=0):
    """Runs `moxing file COMMAND`: the lines that it prints, or the one line of its error."""
    assert main.main(["file", command, *map(str, words)]) == code
    out, err = capfd.readouterr()
    if code:
        assert out == ""
        assert err.count("\n") == 1
        return err.strip()
    assert err == ""
    return out.splitlines()

"""`moxing file ls`."""

import pytest
from stored_tree import FILES, names

import moxing as mox


@pytest.mark.parametrize("slash", ["", "/"])
def test_ls_lists_a_directory(root, run, slash):
    assert names(root, run("ls", root + slash)) == ["a.txt", "b.jpg", "sub/", "sub-twin/"]
    assert run("ls", f"{root}/a.txt") == [f"{root}/a.txt"]


def test_ls_recursive(root, run):
    assert sorted(names(root, run("ls", "-r", root))) == sorted([*FILES, "sub/", "sub/deep/", "sub-twin/"])
    assert names(root, run("ls", "--recursive", f"{root}/sub")) == ["sub/c.txt", "sub/deep/", "sub/deep/d.txt"]


def test_ls_sizes(root, run):
    lines = [line.split() for line in run("ls", "-l", f"{root}/sub", f"{root}/a.txt")]
    assert [(line[0], line[-1]) for line in lines] == [
        ("1500", f"{root}/sub/c.txt"),
        ("-", f"{root}/sub/deep/"),
        ("5", f"{root}/a.txt"),
    ]
    assert lines[0][1].startswith("20")
    assert run("ls", "--human", f"{root}/sub/c.txt")[0].startswith("1.5 kB  20")


def test_ls_of_nothing(root, run):
    assert run("ls", f"{root}/none", code=2) == (
        f"moxing file ls: error: PATH='{root}/none': no such file or directory"
    )
    assert run("ls", f"{root}/*.none", code=2) == (
        f"moxing file ls: error: PATH='{root}/*.none': nothing matches this pattern"
    )
    assert "PATH is not a directory, leave out the slash" in run("ls", f"{root}/a.txt/", code=2)


def test_an_empty_directory(run, tmp_path, s3_folder):
    (tmp_path / "empty").mkdir()
    assert run("ls", str(tmp_path / "empty")) == []
    mox.file.make_dirs(f"{s3_folder}/empty")
    assert run("ls", f"{s3_folder}/empty") == []
    assert run("ls", s3_folder) == [f"{s3_folder}/empty/"]
    assert run("du", f"{s3_folder}/empty") == [f"0  0 files  {s3_folder}/empty/"]

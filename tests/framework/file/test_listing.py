"""Listings of directories."""

import os
import subprocess

import pytest

import moxing as mox

ALL = ["b.txt", "empty", "sub", "sub/a 空格.txt", "sub/deep", "sub/deep/🚀.bin"]
FILES = ["b.txt", "sub/a 空格.txt", "sub/deep/🚀.bin"]


@pytest.fixture
def tree(tmp_path):
    """A folder beside a twin whose name begins with the same letters."""
    for path in ("foo/b.txt", "foo/sub/a 空格.txt", "foo/sub/deep/🚀.bin", "foo-bar/x.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"12345")
    (tmp_path / "foo" / "empty").mkdir()
    return tmp_path / "foo"


def test_list_directory(tree):
    assert mox.file.list_directory(str(tree)) == ["b.txt", "empty", "sub"]
    assert mox.file.list_directory(str(tree) + "/", False) == ["b.txt", "empty", "sub"]
    assert mox.file.list_directory(url=tree, recursive=True) == ALL
    assert mox.file.list_directory(tree, recurisive=True) == ALL
    assert mox.file.list_directory(tree, skip_file=True) == ["empty", "sub"]
    assert mox.file.list_directory(tree, skip_dir=True) == ["b.txt"]
    assert mox.file.list_directory(tree, True, skip_dir=True) == FILES
    assert mox.file.list_directory(tree, remove_sep=False) == ["b.txt", "empty/", "sub/"]
    assert mox.file.list_directory(tree, True, False, True, False) == ["empty/", "sub/", "sub/deep/"]
    assert mox.file.list_directory(tree / "empty") == []


def test_list_directory_errors(tree):
    with pytest.raises(mox.file.MoxFileNotExistsException, match="url: no such directory"):
        mox.file.list_directory(tree / "none")
    with pytest.raises(NotADirectoryError, match="url"):
        mox.file.list_directory(tree / "b.txt")


def test_links_are_followed_and_loops_are_not(tree):
    (tree / "empty" / "twin").symlink_to(tree.parent / "foo-bar")
    (tree / "sub" / "loop").symlink_to(tree)
    listed = mox.file.list_directory(tree, recursive=True)
    assert "empty/twin/x.txt" in listed
    assert [name for name in listed if "loop" in name] == ["sub/loop"]
    assert mox.file.get_size(tree, recursive=True) == 20


@pytest.mark.slow
def test_a_tree_deeper_than_the_recursion_limit(tmp_path):
    start = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(1100):
            os.mkdir("d")
            os.chdir("d")
        os.chdir(tmp_path)
        assert len(mox.file.list_directory("d", recursive=True)) == 1099
        mox.file.copy_parallel("d", "e")
        assert len(mox.file.list_directory("e", recursive=True)) == 1099
    finally:
        os.chdir(start)
        # pytest's own clean-up recurses.
        subprocess.run(["rm", "-rf", tmp_path / "d", tmp_path / "e"], check=True)


def test_get_size(tree):
    assert mox.file.get_size(str(tree / "b.txt")) == 5
    assert mox.file.get_size(url=tree) == 0
    assert mox.file.get_size(tree, True) == 15
    assert mox.file.get_size(tree, recurisive=True) == 15
    assert mox.file.get_size(tree / "empty", recursive=True) == 0
    (tree / "broken").symlink_to("nowhere")
    assert mox.file.get_size(tree, recursive=True) == 15
    with pytest.raises(mox.file.MoxFileNotExistsException, match="url"):
        mox.file.get_size(tree / "none")


def test_glob(tree, monkeypatch):
    assert mox.file.glob(f"{tree}/*.txt") == [f"{tree}/b.txt"]
    assert mox.file.glob(url=f"{tree}/sub/*空*") == [f"{tree}/sub/a 空格.txt"]
    assert mox.file.glob(f"{tree}*/*.txt") == [f"{tree}-bar/x.txt", f"{tree}/b.txt"]
    assert mox.file.glob(f"{tree}/none*") == []
    assert len(mox.file.glob(f"{tree}/**/*.*", recursive=True)) == 3
    assert mox.file.glob(f"file://{tree}/*.txt") == [f"{tree}/b.txt"]
    monkeypatch.chdir(tree)
    assert mox.file.glob("*.txt") == ["b.txt"]


def test_scan_dir(tree):
    with mox.file.scan_dir(str(tree)) as entries:
        found = {entry.name: (entry.path, entry.is_dir(), entry.is_file()) for entry in entries}
    assert found["b.txt"] == (f"{tree}/b.txt", False, True)
    assert found["sub"] == (f"{tree}/sub", True, False)
    assert len(found) == 3
    with pytest.raises(FileNotFoundError, match="url"):
        mox.file.scan_dir(tree / "none")
    with pytest.raises(NotADirectoryError, match="url"):
        mox.file.scan_dir(tree / "b.txt")


def test_walk(tree):
    assert list(mox.file.walk(str(tree))) == list(os.walk(str(tree)))
    assert list(mox.file.walk(tree, topdown=False)) == list(os.walk(str(tree), topdown=False))
    (tree / "empty" / "twin").symlink_to(tree.parent / "foo-bar")
    assert len(list(mox.file.walk(tree, followlinks=True))) == len(list(mox.file.walk(tree))) + 1
    errors = []
    assert list(mox.file.walk(tree / "none", onerror=errors.append)) == []
    assert isinstance(errors[0], FileNotFoundError)
    pruned = []
    for path, directories, _ in mox.file.walk(tree):
        pruned.append(path)
        directories.clear()
    assert pruned == [str(tree)]

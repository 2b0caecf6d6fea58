"""What shifted functions do with URLs."""

import glob
import io
import os
import shutil

import numpy as np
import numpy.lib._datasource
import pytest

import moxing as mox


@pytest.fixture
def shifted():
    mox.file.shift("os", "mox")
    yield
    mox.file.shift("mox", "os")


def test_an_option_without_meaning_for_urls_is_refused(shifted):
    with pytest.raises(TypeError):
        shutil.copytree("file:///a", "/b", ignore=shutil.ignore_patterns("*.tmp"))


def test_urls_of_a_store_work_in_every_function(s3_folder, tmp_path, shifted):
    """A script written for local paths, with an s3 url for a path."""
    os.makedirs(s3_folder)
    with pytest.raises(FileExistsError):
        os.makedirs(s3_folder)
    os.makedirs(os.path.join(s3_folder, "data", "train"), exist_ok=True)
    path = os.path.join(s3_folder, "data", "train", "a.txt")
    with open(path, "w") as f:
        f.write("one\ntwo\n")
    with io.open(path, encoding="utf-8") as f:  # noqa: UP020
        assert f.readlines() == ["one\n", "two\n"]
    assert (os.path.exists(path), os.path.lexists(path), os.path.isfile(path), os.path.isdir(path)) == (
        True,
        True,
        True,
        False,
    )
    assert (os.path.islink(path), os.path.isabs(path), os.access(path, os.R_OK)) == (False, True, True)
    assert os.path.abspath(path) == os.path.realpath(path) == path
    assert os.path.normpath(f"{s3_folder}/x/../data/./train//a.txt") == path
    assert os.path.getsize(path) == os.stat(path).st_size == os.lstat(path).st_size == 8
    assert os.path.getmtime(path) > 1e9
    assert os.listdir(s3_folder) == ["data"]
    assert [entry.path for entry in os.scandir(s3_folder)] == [f"{s3_folder}/data"]
    assert [found[0] for found in os.walk(s3_folder)] == [s3_folder, f"{s3_folder}/data", f"{s3_folder}/data/train"]
    assert glob.glob(f"{s3_folder}/data/*/*.txt") == list(glob.iglob(f"{s3_folder}/data/*/*.txt")) == [path]
    shutil.copyfile(path, tmp_path / "local.txt")
    assert shutil.copy(str(tmp_path / "local.txt"), f"{s3_folder}/data") == f"{s3_folder}/data/local.txt"
    assert shutil.copy2(path, str(tmp_path)) == f"{tmp_path}/a.txt"
    shutil.copytree(f"{s3_folder}/data", tmp_path / "tree")
    assert (tmp_path / "tree" / "train" / "a.txt").read_text() == "one\ntwo\n"
    os.rename(path, f"{s3_folder}/b.txt")
    os.replace(f"{s3_folder}/b.txt", f"{s3_folder}/c.txt")
    assert shutil.move(f"{s3_folder}/c.txt", str(tmp_path / "moved")) == str(tmp_path / "moved")
    os.mkdir(f"{s3_folder}/new")
    with pytest.raises(IsADirectoryError):
        os.remove(f"{s3_folder}/data")
    with pytest.raises(OSError, match="not empty"):
        os.rmdir(f"{s3_folder}/data")
    os.rmdir(f"{s3_folder}/new")
    os.remove(f"{s3_folder}/data/local.txt")
    with pytest.raises(FileNotFoundError):
        os.unlink(f"{s3_folder}/data/local.txt")
    shutil.rmtree(s3_folder)
    assert not os.path.exists(s3_folder)


@pytest.mark.parametrize("kind", ["plain", "file", "s3"])
def test_trees_are_as_strict_as_those_of_shutil(request, tmp_path, shifted, kind):
    """What holds for a plain path, which is Python's own business, holds for a url."""
    root = f"{tmp_path}/root" if kind == "plain" else f"file://{tmp_path}/root"
    root = request.getfixturevalue("s3_folder") if kind == "s3" else root
    for name in ("tree/new", "there/old"):
        os.makedirs(f"{root}/{os.path.dirname(name)}")
        with open(f"{root}/{name}", "w") as f:
            f.write(name)
    with pytest.raises(NotADirectoryError):
        shutil.rmtree(f"{root}/tree/new")
    shutil.rmtree(f"{root}/tree/new", ignore_errors=True)
    with pytest.raises(FileNotFoundError):
        shutil.rmtree(f"{root}/none")
    with pytest.raises(NotADirectoryError):
        shutil.copytree(f"{root}/tree/new", f"{root}/other")
    with pytest.raises(FileNotFoundError):
        shutil.copytree(f"{root}/none", f"{root}/other")
    with pytest.raises(FileExistsError):
        shutil.copytree(f"{root}/tree", f"{root}/there")
    assert os.listdir(f"{root}/there") == ["old"]
    shutil.copytree(f"{root}/tree", f"{root}/there", dirs_exist_ok=True)
    assert sorted(os.listdir(f"{root}/there")) == ["new", "old"]
    assert sorted(os.listdir(root)) == ["there", "tree"]


def test_rmtree_leaves_a_file_of_the_same_name(s3_folder, shifted):
    mox.file.write(f"{s3_folder}/both/x", "x")
    mox.file.write(f"{s3_folder}/both", "file")
    shutil.rmtree(f"{s3_folder}/both")
    assert mox.file.list_directory(s3_folder, recursive=True) == ["both"]
    assert mox.file.read(f"{s3_folder}/both") == "file"


def test_a_map_of_a_url_needs_a_copy(s3_folder, shifted):
    np.save(f"{s3_folder}/x.npy", np.arange(3))
    with pytest.raises(
        io.UnsupportedOperation, match=f"'{s3_folder}/x.npy': a file of a store has no descriptor.*copy"
    ):
        np.load(f"{s3_folder}/x.npy", mmap_mode="r")

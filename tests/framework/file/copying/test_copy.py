"""`copy` and `copy_parallel`."""

import inspect
import os

import pytest
from copied_tree import NAMES, contents

import moxing as mox


def test_copy_parallel_of_a_single_file_is_copy(s3_folder, tmp_path):
    (tmp_path / "a").write_text("a")
    mox.file.copy_parallel(tmp_path / "a", f"{s3_folder}/one")
    mox.file.copy_parallel(f"{s3_folder}/one", tmp_path / "b")
    assert (tmp_path / "b").read_text() == "a"
    for source in (tmp_path / "none", f"{s3_folder}/none"):
        with pytest.raises(mox.file.MoxFileNotExistsException, match="src_url"):
            mox.file.copy_parallel(source, f"{s3_folder}/two")
    with pytest.raises(ValueError, match="file_list"):
        mox.file.copy_parallel(tmp_path / "a", f"{s3_folder}/two", file_list=["x"])


def test_copy_one_file(tmp_path, src):
    mox.file.copy(str(src / "sub/b c.txt"), str(tmp_path / "new" / "dir" / "b"))
    assert (tmp_path / "new" / "dir" / "b").read_text() == "sub/b c.txt"
    mox.file.copy(src_url=src / "foo", dst_url=tmp_path / "new" / "dir" / "b", client_id="x")
    assert (tmp_path / "new" / "dir" / "b").read_text() == "foo"
    assert os.listdir(tmp_path / "new" / "dir") == ["b"]


def test_copy_to_a_bare_name(src, monkeypatch):
    monkeypatch.chdir(src)
    mox.file.copy("foo", "copy")
    assert (src / "copy").read_text() == "foo"


def test_copy_onto_itself_changes_nothing(src):
    (src / "link").symlink_to("foo")
    for target in ("foo", "link"):
        mox.file.copy(src / "foo", src / target)
    assert (src / "link").is_symlink()
    assert (src / "foo").read_text() == "foo"


def test_copy_errors_name_the_argument(tmp_path, src):
    with pytest.raises(mox.file.MoxFileNotExistsException, match="src_url"):
        mox.file.copy(src / "none", tmp_path / "x")
    with pytest.raises(IsADirectoryError, match="src_url.*copy_parallel"):
        mox.file.copy(src, tmp_path / "x")
    for target in (src, str(tmp_path / "x") + "/"):
        with pytest.raises(IsADirectoryError, match="dst_url"):
            mox.file.copy(src / "foo", target)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="src_url is not a regular file"):
        mox.file.copy(tmp_path / "pipe", tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_contents_land_directly_in_the_target(tmp_path, src, slash):
    mox.file.copy_parallel(f"{src}{slash}", f"{tmp_path}/new/dst{slash}")
    assert contents(tmp_path / "new" / "dst") == {name: name for name in NAMES}
    assert (tmp_path / "new" / "dst" / "empty").is_dir()


def test_the_signature_is_the_documented_one():
    parameters = inspect.signature(mox.file.copy_parallel).parameters
    assert {name: value.default for name, value in parameters.items() if value.default is not value.empty} == {
        "file_list": None,
        "threads": 16,
        "is_processing": True,
        "use_queue": True,
    }


def test_it_merges_into_what_is_there(tmp_path, src):
    mox.file.make_dirs(tmp_path / "dst" / "sub")
    mox.file.write(tmp_path / "dst" / "foo", "old")
    mox.file.write(tmp_path / "dst" / "sub" / "own", "own")
    mox.file.copy_parallel(src, tmp_path / "dst")
    assert contents(tmp_path / "dst") == {**contents(src), "sub/own": "own"}


def test_a_single_file_is_copied_as_by_copy(tmp_path, src):
    mox.file.copy_parallel(src / "foo", tmp_path / "wine.data")
    assert (tmp_path / "wine.data").read_text() == "foo"
    with pytest.raises(ValueError, match="file_list"):
        mox.file.copy_parallel(src / "foo", tmp_path / "x", file_list=["a"])
    with pytest.raises(mox.file.MoxFileNotExistsException, match="src_url"):
        mox.file.copy_parallel(src / "none", tmp_path / "x")


def test_a_pipe_does_not_block_the_copy(tmp_path, src):
    os.mkfifo(src / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        mox.file.copy_parallel(src, tmp_path / "dst")


def test_names_that_are_no_utf_8(tmp_path, src):
    raw = os.fsencode(src) + b"/\xff\xfe"
    with open(raw, "w") as f:
        f.write("raw")
    mox.file.copy_parallel(src, tmp_path / "dst")
    with open(os.fsencode(tmp_path) + b"/dst/\xff\xfe") as f:
        assert f.read() == "raw"
    assert mox.file.read(raw) == "raw"

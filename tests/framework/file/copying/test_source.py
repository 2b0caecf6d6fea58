"""What a copy finds in its source."""

import os

import pytest
from copied_tree import contents
from large_object import LARGE

import moxing as mox

HOSTILE = ["../outside", "sub/../../outside", "..", "/etc/hostname", "sub/../..", "../src-twin/x", "./../src/foo"]


@pytest.mark.parametrize("names", [["d/large", "d/large"], ["d", "d/large"], ["d/large", "."]])
def test_a_file_that_is_named_twice_is_copied_once(proxy, large, s3_folder, tmp_path, names):
    mox.file.rename(large, f"{s3_folder}/d/large")
    proxy.sent = 0
    mox.file.copy_parallel(s3_folder, tmp_path / "down", file_list=names)
    assert proxy.sent < 1.5 * len(LARGE)
    assert (tmp_path / "down" / "d" / "large").read_bytes() == LARGE
    proxy.requests.clear()
    mox.file.copy_parallel(tmp_path / "down", f"{s3_folder}/up", file_list=names)
    assert sum(method == "POST" and "uploads=" in target for method, target in proxy.requests) == 1
    assert mox.file.read(f"{s3_folder}/up/d/large", binary=True) == LARGE


def test_file_list(tmp_path, src):
    mox.file.copy_parallel(src, tmp_path / "dst", file_list=("sub/🚀.bin", "./foo", "sub/../a.txt"))
    assert set(contents(tmp_path / "dst")) == {"sub/🚀.bin", "foo", "a.txt"}
    mox.file.copy_parallel(src, tmp_path / "all", file_list=mox.file.list_directory(src))
    assert contents(tmp_path / "all") == contents(src)
    mox.file.copy_parallel(src, tmp_path / "dot", file_list=["."])
    assert contents(tmp_path / "dot") == contents(src)
    mox.file.copy_parallel(src, tmp_path / "none", file_list=[])
    assert os.listdir(tmp_path / "none") == []
    mox.file.copy_parallel(src, tmp_path / "generated", file_list=(name for name in ["foo", "foo"]))
    assert os.listdir(tmp_path / "generated") == ["foo"]


@pytest.mark.parametrize("entry", HOSTILE)
def test_file_list_cannot_leave_the_target(tmp_path, src, entry):
    (tmp_path / "outside").write_text("kept")
    (tmp_path / "src-twin").mkdir()
    (tmp_path / "src-twin" / "x").write_text("kept")
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="file_list entry") as caught:
        mox.file.copy_parallel(src, tmp_path / "dst", file_list=["foo", entry])
    assert repr(entry) in str(caught.value)
    assert contents(tmp_path) == before
    assert not (tmp_path / "dst").exists()


@pytest.mark.parametrize("wrong", ["foo", b"foo", 5])
def test_a_file_list_is_a_list(tmp_path, src, wrong):
    with pytest.raises(TypeError):
        mox.file.copy_parallel(src, tmp_path / "dst", file_list=wrong)


def test_a_missing_entry_is_noticed_before_anything_is_copied(tmp_path, src):
    with pytest.raises(mox.file.MoxFileNotExistsException, match="file_list.*none"):
        mox.file.copy_parallel(src, tmp_path / "dst", file_list=["foo", "none"])
    assert not (tmp_path / "dst").exists()


def test_links_in_the_source_are_copied_as_what_they_point_to(tmp_path, src):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x").write_text("x")
    (src / "linked").symlink_to(tmp_path / "elsewhere")
    mox.file.copy_parallel(src, tmp_path / "dst")
    assert not (tmp_path / "dst" / "linked").is_symlink()
    assert (tmp_path / "dst" / "linked" / "x").read_text() == "x"


def test_links_that_cannot_be_copied(tmp_path, src):
    (src / "loop").symlink_to(src)
    with pytest.raises(OSError, match="link to a directory above"):
        mox.file.copy_parallel(src, tmp_path / "dst")
    (src / "loop").unlink()
    (src / "broken").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match="broken"):
        mox.file.copy_parallel(src, tmp_path / "dst")
    assert not (tmp_path / "dst").exists()

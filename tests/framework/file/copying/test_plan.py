"""What a plan refuses."""

import os

import pytest
from copied_tree import contents

import moxing as mox


@pytest.mark.parametrize("target", ["src", "src/", "src/new", "src/sub", "link", "link/new", "sub/../src/x"])
def test_a_directory_is_not_copied_into_itself(tmp_path, src, target):
    (tmp_path / "link").symlink_to("src")
    (tmp_path / "sub").mkdir()
    before = contents(src)
    with pytest.raises(ValueError, match="into itself"):
        mox.file.copy_parallel(src, f"{tmp_path}/{target}")
    assert contents(src) == before


def test_prefix_twins_are_strangers(tmp_path, src):
    mox.file.copy_parallel(src, str(src) + "-copy")
    assert contents(str(src) + "-copy") == contents(src)
    mox.file.copy_parallel(str(src) + "-copy", tmp_path / "sr")
    assert contents(tmp_path / "sr") == contents(src)


def test_the_source_may_lie_in_the_target_unless_it_would_be_overwritten(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x").write_text("x")
    mox.file.copy_parallel(tmp_path / "a" / "b", tmp_path / "a")
    assert contents(tmp_path / "a") == {"x": "x", "b/x": "x"}
    (tmp_path / "a" / "b" / "b").mkdir()
    (tmp_path / "a" / "b" / "b" / "x").write_text("inner")
    with pytest.raises(ValueError, match="would be written into src_url"):
        mox.file.copy_parallel(tmp_path / "a" / "b", tmp_path / "a")
    assert (tmp_path / "a" / "b" / "x").read_text() == "x"


def test_a_file_and_a_directory_of_one_name(tmp_path, src):
    (tmp_path / "dst" / "foo").mkdir(parents=True)
    with pytest.raises(mox.file.MoxFileNameDuplicateException, match="foo") as caught:
        mox.file.copy_parallel(src, tmp_path / "dst")
    assert isinstance(caught.value, FileExistsError)
    os.rmdir(tmp_path / "dst" / "foo")
    (tmp_path / "dst" / "sub").write_text("")
    for names in (None, ["sub/深/数据.txt"]):
        with pytest.raises(mox.file.MoxFileNameDuplicateException, match="sub"):
            mox.file.copy_parallel(src, tmp_path / "dst", file_list=names)
    assert os.listdir(tmp_path / "dst") == ["sub"]
    with pytest.raises(mox.file.MoxFileNameDuplicateException, match="dst_url"):
        mox.file.copy_parallel(src, tmp_path / "dst" / "sub")

"""exists, stat, make_dirs, rename, remove."""

import errno
import os
import stat

import pytest

import moxing as mox


def test_exists_and_is_directory(tmp_path):
    (tmp_path / "a").write_text("")
    (tmp_path / "broken").symlink_to("nowhere")
    assert mox.file.exists(str(tmp_path)) is True
    assert mox.file.exists(url=tmp_path / "a") is True
    assert mox.file.exists(tmp_path / "none") is False
    assert mox.file.exists(tmp_path / "broken") is False
    assert mox.file.exists("") is False
    assert mox.file.is_directory(tmp_path) is True
    assert mox.file.is_directory(url=str(tmp_path / "a")) is False
    assert mox.file.is_directory(tmp_path / "none") is False
    assert mox.file.is_directory("") is False


def test_stat(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    os.utime(tmp_path / "a", ns=(0, 1_500_000_000_123_456_789))
    found = mox.file.stat(str(tmp_path / "a"))
    assert (found.length, found.mtime_nsec, found.is_directory) == (5, 1_500_000_000_123_456_789, False)
    assert (found.st_size, found.st_mtime_ns) == (5, found.mtime_nsec)
    assert found.st_mtime == pytest.approx(1_500_000_000.123)
    assert stat.S_ISREG(found.st_mode)
    folder = mox.file.stat(url=str(tmp_path))
    assert (folder.length, folder.is_directory) == (0, True)
    for missing in (tmp_path / "none", tmp_path / "a" / "below"):
        with pytest.raises(mox.file.MoxFileNotExistsException, match="url"):
            mox.file.stat(missing)


def test_make_dirs_and_mk_dir(tmp_path):
    mox.file.make_dirs(str(tmp_path / "a" / "b"))
    mox.file.make_dirs(str(tmp_path / "a" / "b") + "/")
    mox.file.mk_dir(url=str(tmp_path / "a" / "c"))
    assert mox.file.list_directory(tmp_path / "a") == ["b", "c"]
    with pytest.raises(OSError, match="url: the parent directory") as caught:
        mox.file.mk_dir(tmp_path / "x" / "y")
    assert isinstance(caught.value, mox.file.MoxFileNotExistsException)
    assert not (tmp_path / "x").exists()
    with pytest.raises(FileExistsError):
        mox.file.mk_dir(tmp_path / "a")
    (tmp_path / "f").write_text("")
    with pytest.raises(FileExistsError):
        mox.file.make_dirs(tmp_path / "f")


def test_remove_a_file_either_way(tmp_path):
    for recursive in (False, True):
        (tmp_path / "a").write_text("")
        (tmp_path / "a-b").write_text("")
        mox.file.remove(str(tmp_path / "a"), recursive)
        assert os.listdir(tmp_path) == ["a-b"]


def test_remove_leaves_a_directory_without_recursive(tmp_path):
    folder = tmp_path / "foo"
    twin = tmp_path / "foo-bar"
    for directory in (folder, twin):
        directory.mkdir()
        (directory / "x").write_text("")
    for url in (str(folder), str(folder) + "/"):
        assert mox.file.remove(url) is None
        assert mox.file.remove(url, recursive=False) is None
        assert (folder / "x").exists()
    mox.file.remove(str(folder) + "/", recursive=True)
    assert os.listdir(tmp_path) == ["foo-bar"]
    mox.file.remove(twin, recurisive=True)
    assert os.listdir(tmp_path) == []


def test_remove_leaves_a_file_named_as_a_directory(tmp_path):
    (tmp_path / "a").write_text("")
    for recursive in (False, True):
        mox.file.remove(str(tmp_path / "a") + "/", recursive=recursive)
        assert (tmp_path / "a").exists()


def test_remove_takes_a_link_and_not_what_it_points_to(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").write_text("")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "broken").symlink_to("nowhere")
    mox.file.remove(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    mox.file.remove(str(tmp_path / "link") + "/", recursive=True)
    mox.file.remove(tmp_path / "broken")
    assert os.listdir(tmp_path) == ["real"]
    assert (tmp_path / "real" / "x").exists()


def test_remove_of_nothing_is_an_error(tmp_path):
    for url in (str(tmp_path / "none"), str(tmp_path / "none") + "/"):
        with pytest.raises(mox.file.MoxFileNotExistsException, match="url"):
            mox.file.remove(url, recursive=True)


def test_rename_files_and_directories(tmp_path):
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    mox.file.rename(str(tmp_path / "a"), dst_url=str(tmp_path / "b"))
    assert (tmp_path / "b").read_text() == "a"
    (tmp_path / "foo").mkdir()
    (tmp_path / "foo" / "x").write_text("x")
    mox.file.rename(src_url=tmp_path / "foo", dst_url=tmp_path / "foo-bar")
    assert (tmp_path / "foo-bar" / "x").read_text() == "x"
    assert not (tmp_path / "foo").exists()


def test_rename_refuses_what_would_lose_something(tmp_path):
    for name in ("src", "dst"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("")
    with pytest.raises(FileNotFoundError, match="src_url"):
        mox.file.rename(tmp_path / "none", tmp_path / "x")
    with pytest.raises(FileNotFoundError, match="dst_url.*make_dirs"):
        mox.file.rename(tmp_path / "src", tmp_path / "none" / "x")
    with pytest.raises(OSError, match="not empty"):
        mox.file.rename(tmp_path / "src", tmp_path / "dst")
    with pytest.raises(OSError, match="dst_url.*into itself"):
        mox.file.rename(tmp_path / "src", tmp_path / "src" / "below")
    assert mox.file.list_directory(tmp_path, recursive=True) == ["dst", "dst/dst", "src", "src/src"]


@pytest.fixture
def two_disks(tmp_path, monkeypatch):
    """tmp_path/one and tmp_path/two behave as two disks: renaming from one to the other fails as it does there."""
    original = os.replace

    def replace(src, dst):
        if ("/one/" in str(src)) != ("/one/" in str(dst)):
            raise OSError(errno.EXDEV, "Invalid cross-device link", src)
        original(src, dst)

    monkeypatch.setattr(os, "replace", replace)
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    return tmp_path


def test_rename_to_another_disk(two_disks):
    (two_disks / "one" / "d").mkdir()
    (two_disks / "one" / "d" / "x").write_text("x")
    (two_disks / "one" / "d" / "link").symlink_to("x")
    (two_disks / "one" / "f").write_text("f")
    mox.file.rename(two_disks / "one" / "d", two_disks / "two" / "d")
    mox.file.rename(two_disks / "one" / "f", two_disks / "two" / "f")
    assert os.listdir(two_disks / "one") == []
    assert mox.file.list_directory(two_disks / "two", recursive=True) == ["d", "d/link", "d/x", "f"]
    assert os.readlink(two_disks / "two" / "d" / "link") == "x"


def test_a_failed_move_to_another_disk_keeps_both_sides(two_disks):
    for place in ("one", "two"):
        (two_disks / place / "d").mkdir()
        (two_disks / place / "d" / place).write_text("")
    with pytest.raises(OSError, match="not empty"):
        mox.file.rename(two_disks / "one" / "d", two_disks / "two" / "d")
    assert mox.file.list_directory(two_disks, recursive=True, skip_dir=True) == ["one/d/one", "two/d/two"]
    assert os.listdir(two_disks / "two") == ["d"]

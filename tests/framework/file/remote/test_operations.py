"""make_dirs, mk_dir, rename and remove on a real store."""

import pytest

import moxing as mox
from moxing.framework.file.remote import operations
from moxing.framework.file.urls import find_remote


def test_directories(s3_folder):
    new = find_remote(f"{s3_folder}/a/b", "url")
    with pytest.raises(mox.file.MoxFileNotExistsException, match="the parent directory does not exist"):
        operations.mk_dir(new)
    operations.make_dirs(new)
    operations.make_dirs(new)
    assert mox.file.is_directory(f"{s3_folder}/a/b")
    with pytest.raises(FileExistsError, match="already"):
        operations.mk_dir(new)
    mox.file.write(f"{s3_folder}/file", "x")
    with pytest.raises(FileExistsError, match="a file has that name"):
        operations.make_dirs(find_remote(f"{s3_folder}/file", "url"))


def test_remove_needs_recursive_for_a_directory(s3_folder):
    mox.file.write(f"{s3_folder}/d/a", "x")
    directory = find_remote(f"{s3_folder}/d", "url")
    operations.remove(directory, recursive=False)
    assert mox.file.exists(f"{s3_folder}/d/a")
    operations.remove(directory, recursive=True)
    assert not mox.file.exists(f"{s3_folder}/d")
    with pytest.raises(mox.file.MoxFileNotExistsException, match="url"):
        operations.remove(directory, recursive=True)


def test_rename_refuses_to_lose_something(s3_folder, tmp_path):
    mox.file.write(f"{s3_folder}/d/a", "a")
    mox.file.write(f"{s3_folder}/e/b", "b")
    with pytest.raises(OSError, match="not empty"):
        operations.rename(f"{s3_folder}/d", f"{s3_folder}/e")
    with pytest.raises(OSError, match="cannot be moved into itself"):
        operations.rename(f"{s3_folder}/d", f"{s3_folder}/d/inside")
    with pytest.raises(mox.file.MoxFileNotExistsException, match="dst_url"):
        operations.rename(f"{s3_folder}/d/a", str(tmp_path / "none" / "a"))
    operations.rename(f"{s3_folder}/d", f"{s3_folder}/d")
    assert mox.file.read(f"{s3_folder}/d/a") == "a"

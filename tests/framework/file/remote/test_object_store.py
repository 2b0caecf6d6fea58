"""Files and directories on a real object store."""

import os

import pytest
from large_object import LARGE, uploads

import moxing as mox


def test_a_large_object_in_every_way(large, s3_folder, tmp_path):
    assert mox.file.get_size(large) == len(LARGE)
    assert mox.file.read(large, binary=True) == LARGE
    mox.file.copy(large, tmp_path / "large")
    assert (tmp_path / "large").read_bytes() == LARGE
    assert os.listdir(tmp_path) == ["large"]
    mox.file.copy(tmp_path / "large", f"{s3_folder}/up")
    mox.file.copy(f"{s3_folder}/up", f"{s3_folder}/copy")
    assert mox.file.read(f"{s3_folder}/copy", binary=True) == LARGE
    mox.file.copy_parallel(s3_folder, tmp_path / "all", threads=2)
    assert (tmp_path / "all" / "copy").read_bytes() == LARGE
    with mox.file.File(large, "rb") as f:
        assert f.read() == LARGE
    with mox.file.File(f"{s3_folder}/obs-name".replace("s3://", "obs://"), "wb") as f:
        f.write(LARGE)
    assert mox.file.read(f"{s3_folder}/obs-name", binary=True) == LARGE
    mox.file.append(f"{s3_folder}/up", b"more", binary=True)
    assert mox.file.read(f"{s3_folder}/up", binary=True) == LARGE + b"more"
    assert uploads(s3_folder) == 0


def test_two_schemes_for_one_store(proxy, s3_folder):
    """`s3://b/a` and `obs://b/a` may be one object: copied onto itself and then removed, it would be lost."""
    other = s3_folder.replace("s3://", "OBS://")
    mox.file.write(f"{s3_folder}/d/a", "kept")
    mox.file.rename(f"{s3_folder}/d/a", f"{other}/d/a")
    mox.file.rename(f"{s3_folder}/d", f"{other}/d/")
    mox.file.copy(f"{s3_folder}/d/a", f"{other}/d/a")
    assert mox.file.read(f"{other}/d/a") == "kept"
    for target in (f"{other}/d", f"{other}/d/inner"):
        with pytest.raises(ValueError, match="into itself"):
            mox.file.copy_parallel(f"{s3_folder}/d", target)
    with pytest.raises(OSError, match="into itself"):
        mox.file.rename(f"{s3_folder}/d", f"{other}/d/inner")
    proxy.requests.clear()
    mox.file.copy(f"{s3_folder}/d/a", f"{other}/b")
    # The content stayed in the store.
    assert not any(method == "GET" and target.endswith("/d/a") for method, target in proxy.requests)
    assert mox.file.read(f"{s3_folder}/b") == "kept"


@pytest.fixture
def two_pairs_of_keys(s3_folder, store, monkeypatch):
    """Keys for each of the two schemes, in variables of their own."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
        for cloud in ("AWS", "OBS"):
            monkeypatch.setenv(f"{cloud}_{name}", store.environment[name])


def test_one_store_with_keys_from_two_places(s3_folder, two_pairs_of_keys, monkeypatch):
    other = s3_folder.replace("s3://", "obs://")
    mox.file.write(f"{s3_folder}/d/a", "kept")
    mox.file.rename(f"{s3_folder}/d/a", f"{other}/d/a")
    mox.file.copy(f"{s3_folder}/d/a", f"{other}/d/a")
    with pytest.raises(ValueError, match="into itself"):
        mox.file.copy_parallel(f"{s3_folder}/d", f"{other}/d/inner")
    # It is the same object even for those who may not reach it under its other name.
    monkeypatch.setenv("OBS_SECRET_ACCESS_KEY", "another")
    mox.file.rename(f"{s3_folder}/d/a", f"{other}/d/a")
    assert mox.file.read(f"{s3_folder}/d/a") == "kept"
    # What one pair of keys may read, the other one may not write.
    with pytest.raises(mox.file.MoxFileRespException, match="OBS_ACCESS_KEY_ID"):
        mox.file.copy(f"{s3_folder}/d/a", f"{other}/b")
    assert mox.file.list_directory(s3_folder, recursive=True) == ["d", "d/a"]

"""Names of objects that want out of the target directory, that are two things at once, or that are merely odd."""

import os
import re
from urllib.parse import quote

import pytest

import moxing as mox

ODD = [
    *("emoji 🚀/🎉.txt", "space s/ x", "plus+/100%.txt", "per%2Fcent", "-rf", "#x?y=z&a", "quote'\"<>&"),
    *("tab\tnewline\n", "ctl\x01", "e\u0301 and \u00e9", "深/数据.txt", "a" * 200 + "/" + "b" * 200 + "/" + "c" * 100),
]
HOSTILE = [
    *("../outside", "sub/../../outside", "..", "a/..", "./x", "a/./b", "/etc/x", "a//b", "//x", "../dst-twin/x"),
    *("nul\0x", "a/\0", "..\0/x"),
]


def listed(*keys):
    """A rewriting of listings that adds keys; a store that takes such keys is not at hand."""

    def rewrite(target, body):
        if b"<ListBucketResult" not in body:
            return body
        prefix = re.search(rb"<Prefix>(.*?)</Prefix>", body).group(1).decode()
        entries = "".join(
            f"<Contents><Key>{prefix}{quote(key)}</Key><Size>4</Size><ETag>&quot;x&quot;</ETag></Contents>"
            for key in keys
        )
        return body.replace(b"<IsTruncated>", f"{entries}<IsTruncated>".encode(), 1)

    return rewrite


@pytest.fixture
def outside(tmp_path):
    (tmp_path / "outside").write_text("kept")
    (tmp_path / "dst-twin").mkdir()
    (tmp_path / "dst-twin" / "x").write_text("kept")
    return lambda: {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}


def test_odd_names_go_there_and_back(s3_folder, tmp_path):
    for name in ODD:
        mox.file.write(f"{s3_folder}/{name}", name)
        assert mox.file.read(f"{s3_folder}/{name}") == name
        assert mox.file.exists(f"{s3_folder}/{name}")
    found = mox.file.list_directory(s3_folder, recursive=True, skip_dir=True)
    assert sorted(found) == sorted(ODD)
    mox.file.copy_parallel(s3_folder, tmp_path / "down")
    mox.file.copy_parallel(tmp_path / "down", f"{s3_folder}-up")
    mox.file.copy_parallel(f"{s3_folder}-up", f"{s3_folder}-copy")
    for name in ODD:
        assert (tmp_path / "down" / name).read_text() == name
        assert mox.file.read(f"{s3_folder}-copy/{name}") == name
    mox.file.remove(f"{s3_folder}-copy", recursive=True)
    assert not mox.file.exists(f"{s3_folder}-copy")
    assert sorted(mox.file.list_directory(f"{s3_folder}-up", recursive=True, skip_dir=True)) == sorted(ODD)


def test_a_key_of_1024_bytes(s3_folder, tmp_path):
    prefix = s3_folder.removeprefix("s3://tests/")
    rest = 1024 - len(prefix) - 1
    key = "/".join(["k" * 100] * 20)[:rest].rstrip("/").ljust(rest, "k")
    mox.file.write(f"{s3_folder}/{key}", "long")
    assert mox.file.list_directory(s3_folder, recursive=True, skip_dir=True) == [key]
    mox.file.copy_parallel(s3_folder, tmp_path / "dst")
    assert (tmp_path / "dst" / key).read_text() == "long"
    with pytest.raises(mox.file.MoxFileRespException):
        mox.file.write(f"{s3_folder}/{key}/{key}", "x")


@pytest.mark.parametrize("key", HOSTILE)
def test_nothing_is_written_outside_the_target(proxy, s3_folder, tmp_path, outside, key):
    mox.file.write(f"{s3_folder}/good", "good")
    before = outside()
    proxy.rewrite = listed(key)
    with pytest.raises(ValueError, match=r"src_url=.*cannot be a path below dst_url"):
        mox.file.copy_parallel(s3_folder, tmp_path / "dst")
    assert outside() == before
    assert not (tmp_path / "dst").exists()
    with pytest.raises(ValueError, match="cannot be a path"):
        mox.file.rename(s3_folder, tmp_path / "dst")
    assert outside() == before
    proxy.rewrite = None
    assert mox.file.exists(f"{s3_folder}/good")
    mox.file.copy_parallel(s3_folder, tmp_path / "dst", file_list=["good"])
    assert (tmp_path / "dst" / "good").read_text() == "good"


@pytest.mark.parametrize("name", ["../outside", "a/../../b", "/etc/x"])
def test_names_in_urls_stay_keys(s3_folder, tmp_path, outside, name):
    """Such a key is no path: it is asked for as it stands, and the store may refuse it."""
    before = outside()
    with pytest.raises(OSError):
        mox.file.copy(f"{s3_folder}/{name}", tmp_path / "x")
    assert outside() == before


def test_a_key_that_is_a_file_and_a_directory(s3_folder, tmp_path):
    mox.file.write(f"{s3_folder}/both", "file")
    mox.file.write(f"{s3_folder}/both/inner", "inner")
    mox.file.write(f"{s3_folder}/both-twin/x", "twin")
    assert mox.file.read(f"{s3_folder}/both") == "file"
    assert mox.file.is_directory(f"{s3_folder}/both")
    assert mox.file.exists(f"{s3_folder}/both")
    with pytest.raises(mox.file.MoxFileNameDuplicateException, match="both") as caught:
        mox.file.copy_parallel(s3_folder, tmp_path / "dst")
    assert isinstance(caught.value, FileExistsError)
    assert not (tmp_path / "dst").exists()
    mox.file.copy_parallel(f"{s3_folder}/both", tmp_path / "dst")
    assert os.listdir(tmp_path / "dst") == ["inner"]
    mox.file.copy(f"{s3_folder}/both", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "file"
    mox.file.remove(f"{s3_folder}/both", recursive=True)
    assert mox.file.list_directory(s3_folder, recursive=True) == ["both-twin", "both-twin/x"]


def test_twins_are_strangers(s3_folder, tmp_path):
    for name in ("foo/x", "foo-bar/y", "foo.txt", "foobar", "fo"):
        mox.file.write(f"{s3_folder}/{name}", name)
    assert mox.file.list_directory(f"{s3_folder}/foo") == ["x"]
    assert mox.file.get_size(f"{s3_folder}/foo", recursive=True) == 5
    mox.file.copy_parallel(f"{s3_folder}/foo", tmp_path / "dst")
    assert mox.file.list_directory(tmp_path / "dst") == ["x"]
    assert not mox.file.is_directory(f"{s3_folder}/f")
    mox.file.rename(f"{s3_folder}/foo", f"{s3_folder}/moved")
    mox.file.remove(f"{s3_folder}/foo-bar", recursive=True)
    assert mox.file.list_directory(s3_folder, recursive=True, skip_dir=True) == ["fo", "foo.txt", "foobar", "moved/x"]


def test_links_in_the_target_are_not_followed_out_of_it(s3_folder, tmp_path, outside):
    mox.file.write(f"{s3_folder}/sub/x", "new")
    mox.file.write(f"{s3_folder}/foo", "new")
    (tmp_path / "dst").mkdir()
    (tmp_path / "dst" / "sub").symlink_to(tmp_path / "dst-twin")
    before = outside()
    with pytest.raises(ValueError, match="link that leads out"):
        mox.file.copy_parallel(s3_folder, tmp_path / "dst")
    (tmp_path / "dst" / "sub").unlink()
    (tmp_path / "dst" / "foo").symlink_to(tmp_path / "outside")
    with pytest.raises(ValueError, match="link that leads out"):
        mox.file.copy_parallel(s3_folder, tmp_path / "dst")
    (tmp_path / "dst" / "foo").unlink()
    assert outside() == {name: content for name, content in before.items() if not name.startswith("dst/")}
    (tmp_path / "dst" / "foo").mkdir()
    with pytest.raises(mox.file.MoxFileNameDuplicateException, match="foo"):
        mox.file.copy_parallel(s3_folder, tmp_path / "dst")


def test_several_slashes_in_a_url_are_one(proxy, s3_folder, tmp_path):
    """As in a path. Scripts join `s3://bucket/log/`, as a platform passed it, and `/name`."""
    directory = f"{s3_folder}//log/"
    mox.file.write(directory + "/a.txt", "a")
    assert mox.file.read(f"{s3_folder}/log/a.txt") == "a" == mox.file.read(f"{s3_folder}///log//a.txt")
    assert mox.file.exists(directory + "//a.txt")
    assert mox.file.list_directory(directory) == ["a.txt"]
    assert mox.file.glob(directory + "/*.txt") == [f"{s3_folder}/log/a.txt"]
    assert list(mox.file.walk(directory + "/")) == [(f"{s3_folder}/log/", [], ["a.txt"])]
    with mox.file.File(directory + "/a.txt", "a") as stream:
        stream.write("b")
    mox.file.copy_parallel(directory, tmp_path / "got")
    mox.file.copy_parallel(tmp_path / "got", directory + "/copy//")
    mox.file.rename(directory + "/copy", directory + "//moved")
    assert mox.file.list_directory(s3_folder, recursive=True, skip_dir=True) == ["log/a.txt", "log/moved/a.txt"]
    with pytest.raises(ValueError, match="dst_url"):
        mox.file.copy_parallel(directory, f"{s3_folder}/log//inside")
    mox.file.remove(directory + "/", recursive=True)
    assert not mox.file.exists(f"{s3_folder}/log")
    # Not only the store at hand, which makes one of them itself.
    assert not any("//" in target or "%2F%2F" in target for _, target in proxy.requests)

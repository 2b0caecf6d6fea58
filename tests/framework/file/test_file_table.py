"""One table of calls for every kind of place: what holds on the local disk holds on a store."""

import json
import os
import time

import pandas as pd
import pytest

import moxing as mox

PLACES = ["local", "file", "s3", "obs", "memory"]


@pytest.fixture(params=PLACES)
def folder(request, tmp_path):
    """The url of an empty directory that exists."""
    if request.param in ("local", "file"):
        (tmp_path / "place").mkdir()
        return f"{'file://' if request.param == 'file' else ''}{tmp_path}/place"
    if request.param == "memory":
        pytest.importorskip("fsspec")
        url = f"memory://{os.urandom(8).hex()}"
    else:
        url = request.getfixturevalue("s3_folder").replace("s3://", f"{request.param}://")
    mox.file.make_dirs(url)
    return url


@pytest.fixture
def tree(folder):
    for name in ("a.txt", "sub/b.txt", "sub/deep/c.txt", "sub-twin/d.txt"):
        mox.file.make_dirs(f"{folder}/{os.path.dirname(name)}".rstrip("/"))
        mox.file.write(f"{folder}/{name}", name)
    mox.file.make_dirs(f"{folder}/empty")
    return folder


def test_write_read_append(folder):
    url = f"{folder}/a b+%41 🚀 数据.txt"
    mox.file.write(url, "Hello\n")
    assert mox.file.read(url) == "Hello\n"
    mox.file.append(url, "世界")
    assert mox.file.read(url) == "Hello\n世界"
    assert mox.file.read(url, binary=True) == "Hello\n世界".encode()
    assert mox.file.read(url, None, True, False) == "Hello\n世界".encode()
    mox.file.append(f"{folder}/new", b"1", binary=True)
    mox.file.append_remote(url, f"{folder}/new")
    mox.file.append_remote(f"{folder}/new", f"{folder}/new")
    assert mox.file.read(f"{folder}/new", binary=True) == ("1Hello\n世界" * 2).encode()
    mox.file.write(f"{folder}/empty", "")
    assert mox.file.read(f"{folder}/empty") == ""
    assert mox.file.exists(f"{folder}/empty")
    with pytest.raises(TypeError, match="data is bytes"):
        mox.file.write(url, b"x")
    assert mox.file.read(url) == "Hello\n世界"


@pytest.mark.parametrize("mode", ["w", "ab", "r"])
def test_an_error_behind_the_end_of_a_file(folder, mode):
    mox.file.write(f"{folder}/a", "old")
    with pytest.raises(KeyError, match="the real error"), mox.file.File(f"{folder}/a", mode) as f:
        f.close()
        raise KeyError("the real error")
    assert mox.file.read(f"{folder}/a") == ("" if mode == "w" else "old")


def test_what_is_not_there(folder):
    url = f"{folder}/none"
    assert not mox.file.exists(url)
    assert not mox.file.is_directory(url)
    assert mox.file.glob(f"{url}/*") == []
    assert list(mox.file.walk(url)) == []
    calls = {
        "read": lambda: mox.file.read(url),
        "File": lambda: mox.file.File(url, "r"),
        "File r+": lambda: mox.file.File(url, "rb+"),
        "stat": lambda: mox.file.stat(url),
        "get_size": lambda: mox.file.get_size(url),
        "list_directory": lambda: mox.file.list_directory(url),
        "list_directory recursive": lambda: mox.file.list_directory(url, recursive=True),
        "scan_dir": lambda: mox.file.scan_dir(url),
        "remove": lambda: mox.file.remove(url),
        "remove recursive": lambda: mox.file.remove(url, recursive=True),
        "rename": lambda: mox.file.rename(url, f"{folder}/x"),
        "copy": lambda: mox.file.copy(url, f"{folder}/x"),
        "copy_parallel": lambda: mox.file.copy_parallel(url, f"{folder}/x"),
        "append_remote": lambda: mox.file.append_remote(url, f"{folder}/x"),
        "mk_dir": lambda: mox.file.mk_dir(f"{url}/sub"),
    }
    for name, call in calls.items():
        with pytest.raises(mox.file.MoxFileNotExistsException, match=r"url|name"):
            call()
            pytest.fail(name)
    assert mox.file.list_directory(folder) == []


def test_listing(tree):
    assert mox.file.list_directory(tree) == ["a.txt", "empty", "sub", "sub-twin"]
    assert mox.file.list_directory(tree + "/", remove_sep=False) == ["a.txt", "empty/", "sub/", "sub-twin/"]
    assert mox.file.list_directory(tree, skip_file=True) == ["empty", "sub", "sub-twin"]
    assert mox.file.list_directory(tree, skip_dir=True) == ["a.txt"]
    everything = [
        *("a.txt", "empty", "sub", "sub/b.txt", "sub/deep", "sub/deep/c.txt"),
        *("sub-twin", "sub-twin/d.txt"),
    ]
    assert mox.file.list_directory(tree, recursive=True) == everything
    assert mox.file.list_directory(tree, recurisive=True) == everything
    assert mox.file.list_directory(f"{tree}/empty") == []
    assert mox.file.list_directory(f"{tree}/empty", True) == []
    with pytest.raises(NotADirectoryError):
        mox.file.list_directory(f"{tree}/a.txt")


def test_stat_and_sizes(tree):
    found = mox.file.stat(f"{tree}/sub/b.txt")
    assert (found.length, found.is_directory) == (9, False)
    assert abs(found.mtime_nsec / 1e9 - time.time()) < 120
    assert mox.file.stat(f"{tree}/sub").is_directory
    assert mox.file.get_size(f"{tree}/sub/b.txt") == 9
    assert mox.file.get_size(f"{tree}/sub") == 0
    assert mox.file.get_size(f"{tree}/sub", recursive=True) == 9 + 14
    assert mox.file.get_size(f"{tree}/empty", recurisive=True) == 0
    for name, is_directory in {"a.txt": False, "sub": True, "sub/": True, "su": False, "a.txt/": False}.items():
        assert mox.file.is_directory(f"{tree}/{name}") is is_directory, name
    assert mox.file.exists(f"{tree}/sub/")
    assert not mox.file.exists(f"{tree}/su")


def test_walk_scan_glob(tree):
    root = tree.removeprefix("file://")
    walked = {path.rstrip("/"): (sorted(dirs), files) for path, dirs, files in mox.file.walk(tree)}
    assert walked == {
        root: (["empty", "sub", "sub-twin"], ["a.txt"]),
        f"{root}/empty": ([], []),
        f"{root}/sub": (["deep"], ["b.txt"]),
        f"{root}/sub/deep": ([], ["c.txt"]),
        f"{root}/sub-twin": ([], ["d.txt"]),
    }
    last = [path for path, _, _ in mox.file.walk(tree, topdown=False)][-1]
    assert last == root
    pruned = []
    for path, dirs, _ in mox.file.walk(tree):
        dirs[:] = [name for name in dirs if name != "sub"]
        pruned.append(path)
    assert len(pruned) == 3
    with mox.file.scan_dir(tree) as entries:
        found = {entry.name: (entry.is_dir(), entry.is_file(), entry.path) for entry in entries}
    assert found["sub"] == (True, False, f"{root}/sub")
    assert found["a.txt"] == (False, True, f"{root}/a.txt")
    sizes = {entry.name: entry.stat().st_size for entry in mox.file.scan_dir(tree) if entry.is_file()}
    assert sizes == {"a.txt": 5}
    assert mox.file.glob(f"{tree}/*.txt") == [f"{root}/a.txt"]
    assert mox.file.glob(f"{tree}/sub*/[bd].t?t") == [f"{root}/sub-twin/d.txt", f"{root}/sub/b.txt"]
    assert mox.file.glob(f"{tree}/a.txt") == [f"{root}/a.txt"]
    found = mox.file.glob(f"{tree}/**/*.txt", recursive=True)
    assert [path.removeprefix(root) for path in found] == [
        "/a.txt",
        "/sub-twin/d.txt",
        "/sub/b.txt",
        "/sub/deep/c.txt",
    ]


def test_directories(folder):
    mox.file.make_dirs(f"{folder}/x/y/z")
    mox.file.make_dirs(f"{folder}/x/y/z")
    assert mox.file.is_directory(f"{folder}/x/y")
    mox.file.mk_dir(f"{folder}/x/w")
    with pytest.raises(FileExistsError):
        mox.file.mk_dir(f"{folder}/x/w")
    with pytest.raises(OSError, match="parent directory"):
        mox.file.mk_dir(f"{folder}/none/w")
    mox.file.write(f"{folder}/file", "")
    with pytest.raises(FileExistsError):
        mox.file.make_dirs(f"{folder}/file")
    assert mox.file.list_directory(folder, recursive=True) == ["file", "x", "x/w", "x/y", "x/y/z"]


def test_remove(tree):
    mox.file.remove(f"{tree}/sub")
    mox.file.remove(f"{tree}/a.txt/")
    assert mox.file.exists(f"{tree}/a.txt")
    assert mox.file.exists(f"{tree}/sub/deep/c.txt")
    mox.file.remove(f"{tree}/a.txt")
    mox.file.remove(f"{tree}/sub/", recursive=True)
    assert mox.file.list_directory(tree, recursive=True) == ["empty", "sub-twin", "sub-twin/d.txt"]
    mox.file.remove(f"{tree}/sub-twin/d.txt", recurisive=True)
    assert not mox.file.exists(f"{tree}/sub-twin/d.txt")


def test_rename(tree):
    mox.file.rename(f"{tree}/a.txt", f"{tree}/b.txt")
    assert mox.file.read(f"{tree}/b.txt") == "a.txt"
    mox.file.rename(f"{tree}/b.txt", f"{tree}/b.txt")
    assert mox.file.read(f"{tree}/b.txt") == "a.txt"
    mox.file.rename(f"{tree}/sub", f"{tree}/moved")
    assert mox.file.list_directory(tree, recursive=True) == [
        *("b.txt", "empty", "moved", "moved/b.txt", "moved/deep", "moved/deep/c.txt", "sub-twin", "sub-twin/d.txt")
    ]
    mox.file.write(f"{tree}/other", "other")
    mox.file.rename(f"{tree}/other", f"{tree}/b.txt")
    assert mox.file.read(f"{tree}/b.txt") == "other"
    with pytest.raises(OSError, match=r"not empty|into itself|Directory not empty"):
        mox.file.rename(f"{tree}/moved", f"{tree}/sub-twin")
    with pytest.raises(OSError, match="into itself"):
        mox.file.rename(f"{tree}/moved", f"{tree}/moved/inner")
    with pytest.raises(OSError, match="directory"):
        mox.file.rename(f"{tree}/b.txt", f"{tree}/moved")


def test_copy(tree):
    mox.file.copy(f"{tree}/a.txt", f"{tree}/new/dir/a.txt")
    mox.file.copy(f"{tree}/sub/b.txt", f"{tree}/new/dir/a.txt", None)
    assert mox.file.read(f"{tree}/new/dir/a.txt") == "sub/b.txt"
    mox.file.copy(f"{tree}/a.txt", f"{tree}/a.txt")
    assert mox.file.read(f"{tree}/a.txt") == "a.txt"
    with pytest.raises(IsADirectoryError, match="src_url.*copy_parallel"):
        mox.file.copy(f"{tree}/sub", f"{tree}/x")
    for target in (f"{tree}/sub", f"{tree}/x/"):
        with pytest.raises(IsADirectoryError, match="dst_url"):
            mox.file.copy(f"{tree}/a.txt", target)


def test_copy_parallel(tree, tmp_path):
    local = str(tmp_path / "local")
    mox.file.copy_parallel(tree, local)
    expected = mox.file.list_directory(tree, recursive=True)
    assert mox.file.list_directory(local, recursive=True) == expected
    mox.file.copy_parallel(local, f"{tree}-back", threads=3, is_processing=False)
    assert mox.file.list_directory(f"{tree}-back", recursive=True) == expected
    mox.file.copy_parallel(tree, f"{tree}-copy/", None, 2, True, False)
    assert mox.file.list_directory(f"{tree}-copy", recursive=True) == expected
    for folder in (f"{tree}-back", f"{tree}-copy", local):
        assert mox.file.read(f"{folder}/sub/deep/c.txt") == "sub/deep/c.txt"
    mox.file.copy_parallel(tree, f"{tree}-some", file_list=["a.txt", "sub/deep", "./sub-twin/../sub/b.txt"])
    assert mox.file.list_directory(f"{tree}-some", recursive=True, skip_dir=True) == [
        *("a.txt", "sub/b.txt", "sub/deep/c.txt")
    ]
    mox.file.copy_parallel(f"{tree}/a.txt", f"{tree}-some/single")
    assert mox.file.read(f"{tree}-some/single") == "a.txt"
    for entry in ("../x", "/etc/hostname", "sub/../../x"):
        with pytest.raises(ValueError, match="file_list entry"):
            mox.file.copy_parallel(tree, f"{tree}-none", file_list=[entry])
    with pytest.raises(mox.file.MoxFileNotExistsException, match="file_list"):
        mox.file.copy_parallel(tree, f"{tree}-none", file_list=["a.txt", "none"])
    with pytest.raises(ValueError, match="into itself"):
        mox.file.copy_parallel(tree, f"{tree}/sub/inner")
    with pytest.raises(mox.file.MoxFileNameDuplicateException):
        mox.file.copy_parallel(f"{tree}/sub", f"{tree}/a.txt")
    assert not mox.file.exists(f"{tree}-none")


TEXT = "one\ntwo\n三\nfour"


def test_reading_a_text_file(folder):
    url = f"{folder}/lines.txt"
    mox.file.write(url, TEXT)
    with mox.file.File(url) as f:
        assert (f.name, f.mode, f.readable(), f.writable(), f.isatty()) == (url, "r", True, False, False)
        assert f.next() == "one\n"
        assert next(f) == "two\n"
        assert f.readline(2) == "三\n"
        assert f.readlines() == ["four"]
        assert f.read() == ""
        f.seek(0)
        assert list(f) == ["one\n", "two\n", "三\n", "four"]
        with pytest.raises(StopIteration):
            f.next()
        f.seek(4)
        assert f.read(3) == "two"
        assert f.size() == len(TEXT.encode())
        with pytest.raises(OSError, match="not writable"):
            f.write("x")
    assert f.closed
    with pytest.raises(ValueError, match="closed"):
        f.read()
    f.close()


@pytest.mark.parametrize("mode", ["rb", "br"])
def test_reading_a_binary_file(folder, mode):
    url = f"{folder}/bytes"
    content = bytes(range(256)) * 1200
    mox.file.write(url, content, binary=True)
    with mox.file.File(url, mode) as f:
        assert (f.mode, f.seekable(), f.size()) == ("rb", True, len(content))
        assert f.read(3) == content[:3]
        assert f.tell() == 3
        f.seek(-10, 2)
        assert f.read() == content[-10:]
        f.seek(200_000)
        assert f.read(70_000) == content[200_000:270_000]
        assert f.seek(5, 1) == 270_005
        assert f.read(2) == content[270_005:270_007]
        f.seek(10**7)
        assert f.read() == b""
        f.seek(0)
        assert f.read() == content


@pytest.mark.parametrize("spelling", ["{}", "{}b", "b{}"])
def test_writing_in_every_mode(folder, spelling):
    url = f"{folder}/file"
    binary = "b" in spelling

    def data(text):
        return text.encode() if binary else text

    def open_file(mode):
        return mox.file.File(url, spelling.format(mode))

    with open_file("w") as f:
        assert f.write(data("12345")) == 5
        f.writelines([data("6"), data("7")])
        f.flush()
        assert f.size() == 7
        assert f.tell() == 7
    assert mox.file.read(url) == "1234567"
    with open_file("a") as f:
        f.write(data("8"))
    with open_file("r+") as f:
        assert f.read(2) == data("12")
        f.seek(2)
        f.write(data("XX"))
        f.seek(0)
        assert f.read() == data("12XX5678")
        assert f.size() == 8
    with open_file("a+") as f:
        f.write(data("9"))
        f.seek(0)
        assert f.read() == data("12XX56789")
    assert mox.file.read(url) == "12XX56789"
    with open_file("w+") as f:
        f.write(data("ab"))
        f.seek(1)
        assert f.read() == data("b")
    assert mox.file.read(url) == "ab"
    mox.file.remove(url)
    with open_file("a") as f:
        pass
    assert mox.file.read(url) == ""
    with pytest.raises(IsADirectoryError):
        mox.file.File(folder, "r")


def test_json_and_pandas(folder):
    frame = pd.DataFrame({"col1": [1, 2], "col2": ["三", "4"]})
    with mox.file.File(f"{folder}/table.csv", "w") as f:
        frame.to_csv(f, index=False)
    with mox.file.File(f"{folder}/table.csv", "r") as f:
        assert pd.read_csv(f, dtype={"col2": str}).equals(frame)
    with mox.file.File(f"{folder}/table.csv", "rb") as f:
        assert pd.read_csv(f, dtype={"col2": str}).equals(frame)
    with mox.file.File(f"{folder}/config.json", "w") as f:
        json.dump({"size": 32}, f)
    with mox.file.File(f"{folder}/config.json") as f:
        assert json.load(f) == {"size": 32}

"""shift: Python's functions take urls, plain paths never notice, and everything can be put back."""

import builtins
import glob
import gzip
import io
import os
import shutil
import tempfile
import timeit
import urllib.request

import numpy as np
import numpy.lib._datasource
import pandas as pd
import pytest

import moxing as mox
from moxing.framework.file import shift_targets

SHIFTED = [f"{route.module}.{route.name}" for route in shift_targets.ROUTES]
MODULES = {
    "builtins": builtins,
    "glob": glob,
    "io": io,
    "os": os,
    "os.path": os.path,
    "shutil": shutil,
    "numpy.lib._datasource": numpy.lib._datasource,
}
#: These say something about the name alone.
BY_NAME = (
    "os.path.abspath",
    "os.path.isabs",
    "os.path.islink",
    "os.path.normpath",
    "os.path.realpath",
)
SETS = ("supports_dir_fd", "supports_effective_ids", "supports_fd", "supports_follow_symlinks")


def snapshot():
    functions = {f"{m}.{name}": value for m, module in MODULES.items() for name, value in vars(module).items()}
    return functions, [set(getattr(os, name)) for name in SETS]


def test_the_documented_functions_are_shifted():
    assert {
        *("builtins.open", "glob.glob", "os.listdir", "os.makedirs", "os.mkdir", "os.path.exists", "os.path.getsize"),
        *("os.path.isdir", "os.path.isfile", "os.remove", "os.rename", "os.scandir", "os.stat", "os.unlink", "os.walk"),
        *("shutil.copyfile", "shutil.copytree", "shutil.rmtree"),
    } <= set(SHIFTED)


@pytest.fixture
def shifted():
    mox.file.shift("os", "mox")
    yield
    mox.file.shift("mox", "os")


def test_there_and_back_again():
    before = snapshot()
    mox.file.shift("os", "mox")
    after = snapshot()
    mox.file.shift("os", "mox")
    assert snapshot() == after
    changed = {name for name in before[0] if before[0][name] is not after[0][name]}
    mox.file.shift("mox", "os")
    assert changed == set(SHIFTED)
    restored = snapshot()
    assert all(restored[0][name] is before[0][name] for name in before[0])
    assert restored[1] == before[1]
    mox.file.shift("mox", "os")
    assert snapshot() == restored


@pytest.mark.parametrize("pair", [("os", "os"), ("mox", "mox"), ("os", "obs"), ("", ""), (None, "mox")])
def test_other_pairs_are_refused(pair):
    before = snapshot()
    with pytest.raises(ValueError, match=r"shift\('os', 'mox'\)"):
        mox.file.shift(*pair)
    assert snapshot() == before


def test_file_urls_work_in_every_function(tmp_path, shifted):
    url = f"file://{tmp_path}"
    os.makedirs(f"{url}/a/b", exist_ok=True)
    os.mkdir(path=f"{url}/a/c")
    with open(f"{url}/a/x.txt", "w", encoding="gbk") as f:
        f.write("模型")
    with open(file=f"{url}/a/x.txt", mode="br") as f:
        assert f.read() == "模型".encode("gbk")
    assert os.path.exists(f"{url}/a/x.txt")
    assert os.path.isfile(f"{url}/a/x.txt")
    assert not os.path.isfile(f"{url}/a")
    assert os.path.isdir(f"{url}/a")
    assert os.path.getsize(f"{url}/a/x.txt") == 4
    assert os.stat(f"{url}/a/x.txt").st_size == 4
    assert os.listdir(f"{url}/a") == ["b", "c", "x.txt"]
    assert sorted(entry.name for entry in os.scandir(f"{url}/a")) == ["b", "c", "x.txt"]
    assert next(os.walk(top=f"{url}/a"))[2] == ["x.txt"]
    assert glob.glob(f"{url}/a/*.txt") == [f"{tmp_path}/a/x.txt"]
    assert shutil.copyfile(f"{tmp_path}/a/x.txt", f"{url}/a/y.txt") == f"{url}/a/y.txt"
    os.rename(f"{url}/a/y.txt", dst=f"{url}/a/z.txt")
    assert shutil.copytree(f"{url}/a", f"{tmp_path}/b") == f"{tmp_path}/b"
    os.remove(f"{url}/b/z.txt")
    os.unlink(f"{url}/b/x.txt")
    assert os.listdir(tmp_path / "b") in (["b", "c"], ["c", "b"])
    shutil.rmtree(f"{url}/b")
    assert not (tmp_path / "b").exists()
    shutil.rmtree(f"{url}/b", ignore_errors=True)
    with pytest.raises(FileNotFoundError):
        shutil.rmtree(f"{url}/b")


@pytest.mark.parametrize("name", [name for name in SHIFTED if name not in BY_NAME])
def test_urls_without_a_backend_say_so(tmp_path, shifted, name):
    module, _, function = name.rpartition(".")
    paths = next(route.paths for route in shift_targets.ROUTES if (route.module, route.name) == (module, function))
    for position in range(len(paths)):
        arguments = [str(tmp_path)] * len(paths)
        arguments[position] = "nosuch://host/a"
        with pytest.raises(mox.file.UnsupportedSchemeError, match="nosuch://host/a"):
            getattr(MODULES[module], function)(*arguments)
        with pytest.raises(mox.file.UnsupportedSchemeError, match="nosuch://host/a"):
            getattr(MODULES[module], function)(**dict(zip(paths, arguments, strict=True)))


def test_an_option_without_meaning_for_urls_is_refused(shifted):
    with pytest.raises(TypeError):
        shutil.copytree("file:///a", "/b", ignore=shutil.ignore_patterns("*.tmp"))


def test_plain_paths_stay_with_the_originals(tmp_path, shifted):
    for odd in ("a://b", "x y", "模型"):
        folder = tmp_path / "d" / odd.replace("//", "/")
        os.makedirs(folder)
        with open(folder / "x", "x") as f:
            assert not isinstance(f, mox.file.File)
        assert os.path.getsize(folder / "x") == 0
    assert os.path.exists(f"{tmp_path}/d/a://b")
    with pytest.raises(FileExistsError):
        os.makedirs(tmp_path)
    with pytest.raises(IsADirectoryError):
        os.remove(tmp_path)
    assert isinstance(os.stat(str(tmp_path)), os.stat_result)
    with open(os.open(tmp_path / "fd", os.O_CREAT | os.O_WRONLY), "w") as f:
        f.write("by descriptor")
        assert os.stat(f.fileno()).st_size == 0
    descriptor = os.open(tmp_path, os.O_RDONLY)
    assert os.stat("fd", dir_fd=descriptor).st_size == 13
    os.close(descriptor)


def test_the_standard_library_still_works_on_top(tmp_path, shifted):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "x").write_text("x")
    (tmp_path / "src" / "link").symlink_to("x")
    shutil.copytree(tmp_path / "src", tmp_path / "dst", symlinks=True)
    assert (tmp_path / "dst" / "link").is_symlink()
    shutil.rmtree(tmp_path / "dst")
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder, tempfile.NamedTemporaryFile(dir=folder):
        assert len(os.listdir(folder)) == 1
    shutil.copy2(tmp_path / "src" / "link", tmp_path / "link", follow_symlinks=False)
    assert (tmp_path / "link").is_symlink()


def test_mox_file_itself_works_while_shifted(tmp_path, shifted):
    mox.file.make_dirs(tmp_path / "a")
    mox.file.write(tmp_path / "a" / "x", "x")
    mox.file.copy_parallel(tmp_path / "a", tmp_path / "b")
    mox.file.remove(tmp_path / "a", recursive=True)
    assert mox.file.list_directory(tmp_path, recursive=True) == ["b", "b/x"]
    assert mox.file.glob(f"{tmp_path}/*") == [f"{tmp_path}/b"]


def test_the_stand_ins_look_like_the_originals(shifted):
    assert os.listdir.__name__ == "listdir"
    assert "directory" in os.makedirs.__doc__


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


@pytest.mark.parametrize("scheme", ["s3", "obs"])
def test_pandas_and_numpy_take_urls(s3_folder, shifted, scheme, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = s3_folder.replace("s3://", f"{scheme}://")
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    frame.to_csv(f"{folder}/x.csv", index=False)
    assert pd.read_csv(f"{folder}/x.csv").equals(frame)
    frame.to_json(f"{folder}/x.json")
    assert pd.read_json(f"{folder}/x.json").equals(frame)
    array = np.arange(12.0).reshape(3, 4)
    np.save(f"{folder}/x.npy", array)
    assert (np.load(f"{folder}/x.npy") == array).all()
    np.savez(f"{folder}/x.npz", array=array)
    with np.load(f"{folder}/x.npz") as loaded:
        assert (loaded["array"] == array).all()
    np.savetxt(f"{folder}/x.txt", array)
    assert (np.loadtxt(f"{folder}/x.txt") == array).all()
    np.savetxt(f"{folder}/x.txt", 2 * array)
    assert (np.genfromtxt(f"{folder}/x.txt") == 2 * array).all()
    with open(f"{folder}/x.txt.gz", "wb") as f:
        f.write(gzip.compress(b"1 2\n3 4\n"))
    assert np.loadtxt(f"{folder}/x.txt.gz").tolist() == [[1, 2], [3, 4]]
    for ending in ("gz", "bz2", "xz"):
        open(f"{folder}/y.{ending}", "w").close()
        np.savetxt(f"{folder}/y.{ending}", 3 * array)
        assert np.loadtxt(f"{folder}/y.{ending}").tolist() == (3 * array).tolist()
    with np.lib._datasource.open(f"{folder}/z.gz", "wb") as f:
        f.write(b"packed")
    with open(f"{folder}/z.gz", "rb") as f:
        assert gzip.decompress(f.read()) == b"packed"
    assert os.listdir(tmp_path) == []


def test_the_web_stays_the_web(tmp_path, shifted):
    assert not os.path.exists("https://example.com/a")
    assert not os.path.isfile("http://example.com/a")
    with pytest.raises(FileNotFoundError):
        os.stat("http://example.com/a")
    (tmp_path / "x").write_text("by file url")
    with urllib.request.urlopen(f"file://{tmp_path}/x") as answer:
        assert answer.read() == b"by file url"
        assert not isinstance(answer, mox.file.File)
    with pytest.raises(urllib.error.URLError, match="unknown url type"):
        urllib.request.urlopen("nosuch://host/a")


def test_a_map_of_a_url_needs_a_copy(s3_folder, shifted):
    np.save(f"{s3_folder}/x.npy", np.arange(3))
    with pytest.raises(
        io.UnsupportedOperation, match=f"'{s3_folder}/x.npy': files of a store have no descriptor.*copy"
    ):
        np.load(f"{s3_folder}/x.npy", mmap_mode="r")


def test_fsspec_is_as_before_when_shifted_back(s3_folder):
    import fsspec

    before = dict(fsspec.registry)
    mox.file.shift("os", "mox")
    with fsspec.open(f"{s3_folder}/a.txt", "w") as f:
        f.write("by fsspec")
    assert fsspec.filesystem("s3").ls(s3_folder, detail=False) == [f"{s3_folder}/a.txt".removeprefix("s3://")]
    mox.file.shift("mox", "os")
    assert dict(fsspec.registry) == before
    assert mox.file.read(f"{s3_folder}/a.txt") == "by fsspec"


def test_plain_paths_stay_fast(tmp_path):
    """What a stand-in adds, measured on a function that does next to nothing; it is the same for all."""
    path = str(tmp_path / "x")

    def measure():
        return min(timeit.repeat(lambda: os.path.isabs(path), number=5000, repeat=9)) / 5000

    before = measure()
    mox.file.shift("os", "mox")
    after = measure()
    mox.file.shift("mox", "os")
    assert after - before < 2e-6

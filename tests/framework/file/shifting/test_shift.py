"""`shift`: Python's file functions with URLs."""

import builtins
import glob
import io
import os
import shutil
import tempfile
import timeit

import numpy.lib._datasource
import pytest

import moxing as mox
from moxing.framework.file.shifting import targets

SHIFTED = [f"{route.module}.{route.name}" for route in targets.ROUTES]
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
    paths = next(route.paths for route in targets.ROUTES if (route.module, route.name) == (module, function))
    for position in range(len(paths)):
        arguments = [str(tmp_path)] * len(paths)
        arguments[position] = "nosuch://host/a"
        with pytest.raises(mox.file.UnsupportedSchemeError, match="nosuch://host/a"):
            getattr(MODULES[module], function)(*arguments)
        with pytest.raises(mox.file.UnsupportedSchemeError, match="nosuch://host/a"):
            getattr(MODULES[module], function)(**dict(zip(paths, arguments, strict=True)))


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

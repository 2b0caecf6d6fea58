"""`tf.gfile`, `tf.io.gfile` and `file_io` of scripts: urls of a store as local paths, with TensorFlow's errors."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import zlib

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.lib.io import file_io as real_file_io

from moxing.framework import file
from moxing.tf1 import file_io, gfile, io_gfile


@pytest.fixture(params=["local", "s3"])
def folder(request, tmp_path):
    """The same table of calls on TensorFlow's own ground and on a store."""
    if request.param == "local":
        (tmp_path / "folder").mkdir()
        return str(tmp_path / "folder")
    url = request.getfixturevalue("s3_folder")
    file.make_dirs(url)
    return url


def test_the_names_are_those_of_tensorflow():
    for ours, theirs in ((gfile, tf.gfile), (io_gfile, tf.io.gfile), (file_io, real_file_io)):
        assert [name for name in dir(theirs) if not name.startswith("_") and not hasattr(ours, name)] == []


def test_tf_gfile(folder):
    gfile.MakeDirs(folder + "/a/b")
    with gfile.Open(folder + "/a/x.txt", "w") as stream:
        stream.write("one\n")
        stream.write(b"two\n")
    with gfile.GFile(folder + "/a/x.txt") as stream:
        assert stream.readline() == "one\n"
        assert stream.tell() == 4
        assert list(stream) == ["two\n"]
        stream.seek(0)
        assert stream.read(3) == "one"
        assert stream.size() == 8
    with gfile.FastGFile(folder + "/a/x.txt", "rb") as stream:
        assert stream.read() == b"one\ntwo\n"
        stream.seek(-4, 2)
        assert stream.readlines() == [b"two\n"]
    with gfile.GFile(folder + "/a/x.txt", "a") as stream:
        stream.write("three\n")
    assert gfile.Stat(folder + "/a/x.txt").length == 14
    assert not gfile.Stat(folder + "/a/x.txt").is_directory
    gfile.Copy(folder + "/a/x.txt", folder + "/a/y.txt")
    with pytest.raises(tf.errors.AlreadyExistsError):
        gfile.Copy(folder + "/a/x.txt", folder + "/a/y.txt")
    gfile.Copy(newpath=folder + "/a/y.txt", oldpath=folder + "/a/x.txt", overwrite=True)
    with pytest.raises(tf.errors.AlreadyExistsError):
        gfile.Rename(folder + "/a/x.txt", folder + "/a/y.txt")
    gfile.Rename(folder + "/a/x.txt", folder + "/a/z.txt")
    assert sorted(name.rstrip("/") for name in gfile.ListDirectory(folder + "/a")) == ["b", "y.txt", "z.txt"]
    assert sorted(gfile.Glob(folder + "/a/*.txt")) == [folder + "/a/y.txt", folder + "/a/z.txt"]
    assert gfile.Glob([folder + "/a/y*", folder + "/a/z*"]) == [folder + "/a/y.txt", folder + "/a/z.txt"]
    walked = {top.rstrip("/"): sorted(names) for top, _, names in gfile.Walk(folder)}
    assert walked == {folder: [], folder + "/a": ["y.txt", "z.txt"], folder + "/a/b": []}
    assert gfile.Glob(filename=folder + "/*") == [folder + "/a"]
    assert [top.rstrip("/") for top, _, _ in gfile.Walk(folder, in_order=False)][-1] == folder
    assert gfile.Exists(folder + "/a/y.txt")
    assert gfile.IsDirectory(folder + "/a")
    assert not gfile.IsDirectory(folder + "/a/y.txt")
    gfile.Remove(folder + "/a/y.txt")
    assert not gfile.Exists(folder + "/a/y.txt")
    with pytest.raises(tf.errors.OpError):
        gfile.Remove(folder + "/a")
    gfile.DeleteRecursively(folder + "/a")
    assert not gfile.Exists(folder + "/a")


def test_tf_io_gfile(folder):
    io_gfile.makedirs(folder + "/a")
    with io_gfile.GFile(io_gfile.join(folder, "a", "x"), "wb") as stream:
        stream.write(b"\x00\xff")
    assert io_gfile.GFile(folder + "/a/x", "rb").read() == b"\x00\xff"
    io_gfile.copy(folder + "/a/x", folder + "/a/y")
    io_gfile.copy(src=folder + "/a/x", dst=folder + "/a/y", overwrite=True)
    io_gfile.rename(folder + "/a/y", folder + "/a/z")
    assert sorted(io_gfile.glob(folder + "/a/*")) == [folder + "/a/x", folder + "/a/z"]
    assert sorted(io_gfile.listdir(folder + "/a")) == ["x", "z"]
    assert io_gfile.exists(folder + "/a/x")
    assert io_gfile.isdir(folder + "/a")
    assert io_gfile.stat(folder + "/a/x").length == 2
    assert [sorted(names) for _, _, names in io_gfile.walk(folder, topdown=False)] == [["x", "z"], []]
    io_gfile.mkdir(folder + "/b")
    io_gfile.remove(folder + "/a/x")
    io_gfile.rmtree(folder + "/a")
    assert not io_gfile.exists(folder + "/a")


def test_file_io(folder):
    file_io.recursive_create_dir(folder + "/a")
    file_io.write_string_to_file(folder + "/a/x", "text")
    assert file_io.read_file_to_string(folder + "/a/x") == "text"
    assert file_io.read_file_to_string(folder + "/a/x", binary_mode=True) == b"text"
    with file_io.FileIO(folder + "/a/x", "r") as stream:
        assert stream.read() == "text"
    assert file_io.file_exists(folder + "/a/x")
    assert file_io.get_matching_files(folder + "/a/*") == [folder + "/a/x"]
    file_io.delete_file(folder + "/a/x")
    assert not file_io.file_exists(folder + "/a/x")


def test_the_newer_names_of_file_io(folder):
    file_io.recursive_create_dir_v2(folder + "/a/b")
    file_io.create_dir_v2(folder + "/c")
    file_io.atomic_write_string_to_file(folder + "/a/x", "text")
    with pytest.raises(tf.errors.AlreadyExistsError):
        file_io.atomic_write_string_to_file(folder + "/a/x", "other", overwrite=False)
    assert file_io.list_directory_v2(folder + "/a") and file_io.is_directory_v2(folder + "/a")
    file_io.copy_v2(folder + "/a/x", folder + "/a/y")
    file_io.atomic_write_string_to_file(folder + "/a/z", "four", overwrite=False)
    assert file_io.filecmp(folder + "/a/x", folder + "/a/y")
    assert not file_io.filecmp(folder + "/a/x", folder + "/a/z")
    assert file_io.file_crc32(folder + "/a/x", block_size=3) == hex(zlib.crc32(b"text"))
    assert file_io.has_atomic_move(folder + "/a/x") is ("://" not in folder)
    file_io.rename_v2(folder + "/a/y", folder + "/a/z", overwrite=True)
    assert sorted(file_io.get_matching_files_v2(folder + "/a/[xyz]")) == [folder + "/a/x", folder + "/a/z"]
    assert file_io.stat_v2(folder + "/a/z").length == 4
    assert [sorted(names) for _, _, names in file_io.walk_v2(folder + "/a")] == [["x", "z"], []]
    file_io.delete_file_v2(folder + "/a/x")
    file_io.delete_recursively_v2(folder + "/a")
    assert not file_io.file_exists_v2(folder + "/a/z")


@pytest.mark.parametrize("walk", [gfile.Walk, io_gfile.walk, file_io.walk])
def test_a_walk_leaves_out_what_is_taken_out_of_its_list(folder, walk):
    for path in ("a/skip", "b"):
        io_gfile.makedirs(f"{folder}/{path}/below")
    seen = []
    for top, directories, _ in walk(folder):
        seen.append(top.rstrip("/").removeprefix(folder))
        directories[:] = sorted(name.rstrip("/") for name in directories if "skip" not in name)
    assert seen == ["", "/a", "/b", "/b/below"]


def test_what_a_walk_does_not_find(folder):
    errors = []
    with pytest.raises(StopIteration):
        next(io_gfile.walk(folder + "/missing"))
    with pytest.raises(ZeroDivisionError):
        list(io_gfile.walk(folder + "/missing", onerror=lambda error: errors.append(error) or 1 / 0))
    assert [type(error) for error in errors] == [tf.errors.NotFoundError]


def test_the_size_of_a_file_that_is_written(folder):
    with gfile.GFile(folder + "/x", "w") as stream:
        stream.write("abc")
        stream.flush()
        assert stream.size() == 3
    with gfile.GFile(folder + "/x", "a") as stream:
        assert stream.size() == 3
        stream.write("de")
        stream.flush()
        assert stream.size() == 5


def test_errors_are_those_of_tensorflow(folder):
    missing = folder + "/missing"
    for act in (
        gfile.Remove,
        gfile.Stat,
        gfile.ListDirectory,
        gfile.DeleteRecursively,
        lambda path: gfile.Copy(path, folder + "/other"),
        lambda path: gfile.Open(path).read(),
        lambda path: gfile.MkDir(path + "/a/b"),
    ):
        with pytest.raises(tf.errors.NotFoundError):
            act(missing)
    gfile.MakeDirs(folder + "/a")
    gfile.MkDir(folder + "/a")  # it is there
    with pytest.raises(tf.errors.PermissionDeniedError):
        gfile.Open(missing, "w").read()
    assert list(gfile.Walk(missing)) == []
    assert gfile.Glob(missing + "*") == []


def test_a_block_that_fails_writes_nothing(s3_folder):
    with pytest.raises(ZeroDivisionError), gfile.Open(s3_folder + "/x", "w") as stream:
        stream.write("half")
        raise ZeroDivisionError
    assert not gfile.Exists(s3_folder + "/x")


def test_keys_that_are_refused(s3_folder):
    file.set_auth(ak="somebody", sk="else")
    with pytest.raises(tf.errors.PermissionDeniedError):
        gfile.ListDirectory(s3_folder)
    with pytest.raises(tf.errors.PermissionDeniedError):
        next(gfile.Walk(s3_folder))


def test_local_files_are_tensorflows_own(tmp_path):
    with gfile.GFile(str(tmp_path / "x"), "w") as stream:
        stream.write("x")
        assert type(stream._writable_file).__module__.startswith("tensorflow")
    assert isinstance(stream, tf.gfile.GFile)


def test_in_a_script(s3_folder, tmp_path):
    script = """
        import sys
        import tensorflow as tf
        from tensorflow.python.platform import gfile
        from tensorflow.python.lib.io import file_io
        import moxing.tensorflow as mox
        mox.cache()
        url = sys.argv[1]
        with tf.gfile.GFile(url + '/a.txt', 'w') as f:
            f.write('from a script')
        assert tf.gfile.Exists(url + '/a.txt') and gfile.Exists(url + '/a.txt') and tf.io.gfile.exists(url + '/a.txt')
        assert file_io.read_file_to_string(url + '/a.txt') == 'from a script'
        assert tf.compat.v1.gfile.ListDirectory(url) == ['a.txt']
        assert tf.train.latest_checkpoint(url) is None
        for name in ('model.ckpt-7.index', 'model.ckpt-7.data-00000-of-00001'):
            mox.file.write(url + '/log/' + name, '')
        mox.file.write(url + '/log/checkpoint', 'model_checkpoint_path: "model.ckpt-7"')
        assert tf.train.latest_checkpoint(url + '/log') == url + '/log/model.ckpt-7'
        assert tf.train.get_checkpoint_state(url + '/log').model_checkpoint_path == url + '/log/model.ckpt-7'
        assert tf.train.checkpoint_exists(url + '/log/model.ckpt-7')
        assert tf.io.read_file and tf.io.TFRecordWriter is tf.python_io.TFRecordWriter
        try:
            tf.gfile.Open(url + '/none').read()
        except tf.errors.NotFoundError as error:
            print(error)
    """
    (tmp_path / "main.py").write_text(textwrap.dedent(script))
    command = [sys.executable, "-m", "moxing", "run", "main.py", s3_folder]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert s3_folder + "/none" in done.stdout
    assert file.read(s3_folder + "/a.txt") == "from a script"

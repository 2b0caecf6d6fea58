"""`tf.gfile` of scripts: urls of a store like local paths."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.files import gfile


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


def test_local_files_are_tensorflows_own(tmp_path):
    with gfile.GFile(str(tmp_path / "x"), "w") as stream:
        stream.write("x")
        assert type(stream._writable_file).__module__.startswith("tensorflow")
    assert isinstance(stream, tf.gfile.GFile)

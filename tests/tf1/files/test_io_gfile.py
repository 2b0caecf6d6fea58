"""`tf.io.gfile` of scripts: urls of a store like local paths."""

from __future__ import annotations

from moxing.tf1.files import io_gfile


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

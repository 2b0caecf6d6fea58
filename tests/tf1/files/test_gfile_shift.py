"""shift('tf', 'mox'): TensorFlow's own file functions take urls in code that does not run under `moxing run`."""

from __future__ import annotations

import pytest
import tensorflow
import tensorflow.compat.v1 as tf

from moxing.framework import file

MODULES = {
    "tf.gfile": lambda: tf.gfile,
    "compat.v1.io": lambda: tf.io.gfile,
    "compat.v2.io": lambda: tensorflow.compat.v2.io.gfile,
    "tf.io": lambda: tensorflow.io.gfile,
}


@pytest.fixture
def shifted():
    file.shift("tf", "mox")
    yield
    file.shift("mox", "tf")


def names(module) -> dict[str, object]:
    return {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}


def test_urls_and_local_paths(shifted, s3_folder, tmp_path):
    for folder in (s3_folder, str(tmp_path)):
        with tf.gfile.GFile(folder + "/a.txt", "w") as stream:
            stream.write("hello")
        assert tensorflow.io.gfile.exists(folder + "/a.txt")
        assert tf.io.gfile.listdir(folder) == ["a.txt"]
        assert tf.gfile.Glob(folder + "/*.txt") == [folder + "/a.txt"] == tf.io.gfile.glob(folder + "/*.txt")
        with tensorflow.io.gfile.GFile(folder + "/a.txt") as stream:
            assert stream.read() == "hello"
        with pytest.raises(tf.errors.NotFoundError):
            tf.gfile.Open(folder + "/none").read()
        tf.gfile.Remove(folder + "/a.txt")
        assert not tensorflow.compat.v2.io.gfile.exists(folder + "/a.txt")


@pytest.mark.parametrize("module", MODULES)
def test_there_and_back(module):
    before = names(MODULES[module]())
    file.shift("tf", "mox")
    file.shift("tf", "mox")  # as much as once
    during = names(MODULES[module]())
    file.shift("mox", "tf")
    assert names(MODULES[module]()) == before
    assert during.keys() == before.keys()
    assert during["GFile"] is not before["GFile"]
    file.shift("mox", "tf")  # nothing to take back


def test_other_pairs_are_errors():
    with pytest.raises(ValueError, match="old='tf', new='os': expected shift"):
        file.shift("tf", "os")
    with pytest.raises(ValueError, match="old='tf', new='tf': expected shift"):
        file.shift("tf", "tf")

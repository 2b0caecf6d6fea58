"""Errors of TensorFlow in place of those of mox.file."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from moxing.framework import file
from moxing.tf1.files import gfile


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


def test_keys_that_are_refused(s3_folder):
    file.set_auth(ak="somebody", sk="else")
    with pytest.raises(tf.errors.PermissionDeniedError):
        gfile.ListDirectory(s3_folder)
    with pytest.raises(tf.errors.PermissionDeniedError):
        next(gfile.Walk(s3_folder))

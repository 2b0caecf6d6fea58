"""Walks over a store."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.files import file_io, gfile, io_gfile


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

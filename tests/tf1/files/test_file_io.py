"""`file_io` of scripts: urls of a store like local paths."""

from __future__ import annotations

import zlib

import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.files import file_io


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

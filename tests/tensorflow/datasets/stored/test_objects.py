"""Objects on a real store: listing, reading, and what is wrong with one."""

from __future__ import annotations

import pytest

import moxing as mox
from moxing.tensorflow.datasets.stored.objects import (
    UnusableObjectError,
    describe_object,
    list_tree,
    read_object,
    read_range,
    require_remote,
    stored_object,
)


def test_an_object_is_read_as_it_was_listed(s3_folder):
    mox.file.write(s3_folder + "/a/b.bin", b"content", binary=True)
    remote = require_remote(s3_folder + "/", "base_dir")
    (item,) = [stored_object(remote, entry) for entry in list_tree(remote, "base_dir") if not entry.is_directory]
    assert item == describe_object(s3_folder + "/a/b.bin")
    assert read_object(item) == (b"content", True)
    assert read_range(item, 1, 4) == b"ont"


def test_an_object_that_changed(s3_folder):
    mox.file.write(s3_folder + "/a.bin", b"before", binary=True)
    item = describe_object(s3_folder + "/a.bin")
    mox.file.write(s3_folder + "/a.bin", b"after", binary=True)
    assert read_object(item) == (b"after", False)
    with pytest.raises(UnusableObjectError, match="has changed meanwhile"):
        read_range(item, 0, 2)


def test_an_object_that_is_missing(s3_folder):
    mox.file.write(s3_folder + "/a.bin", b"before", binary=True)
    item = describe_object(s3_folder + "/a.bin")
    mox.file.remove(s3_folder + "/a.bin")
    assert describe_object(s3_folder + "/a.bin") is None
    for read in (read_object, lambda item: read_range(item, 0, 2)):
        with pytest.raises(UnusableObjectError, match="there is no such object"):
            read(item)


def test_a_directory_that_is_missing(s3_folder):
    with pytest.raises(ValueError, match="base_dir=.*none' does not exist: expected a directory"):
        list(list_tree(require_remote(s3_folder + "/none", "base_dir"), "base_dir"))
    with pytest.raises(ValueError, match="base_dir='/data': expected a url of an object store"):
        require_remote("/data", "base_dir")

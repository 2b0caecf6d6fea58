"""The file that a download in parts writes into."""

import contextlib
import os

import pytest
from large_object import LARGE

import moxing as mox
from moxing.framework.file.s3 import part_file
from moxing.framework.file.s3.clients import get_client

MB = 1 << 20


def test_a_cut_off_download_of_another_version_is_not_continued(large, tmp_path):
    client = get_client("s3")
    key = large.removeprefix("s3://tests/")
    info = client.head("tests", key)
    with (
        pytest.raises(KeyError),
        part_file.open_part_file(str(tmp_path / "x"), client.url("tests", key), info) as part,
    ):
        part.write_part(0, bytearray(8 * MB))
        raise KeyError("cut off")
    assert len(os.listdir(tmp_path)) == 1
    mox.file.write(large, LARGE[::-1], binary=True)
    mox.file.copy(large, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == LARGE[::-1]
    assert os.listdir(tmp_path) == ["x"]


def test_two_downloads_to_one_name(large, tmp_path):
    """The first to be done clears away what earlier attempts left, but not what the other one is writing."""
    client = get_client("s3")
    key = large.removeprefix("s3://tests/")
    arguments = str(tmp_path / "x"), client.url("tests", key), client.head("tests", key)
    with contextlib.ExitStack() as second:
        with part_file.open_part_file(*arguments) as first:
            other = second.enter_context(part_file.open_part_file(*arguments))
            first.finish(str(tmp_path / "x"))
        assert os.path.exists(other.path)
        other.finish(str(tmp_path / "x"))
    assert os.listdir(tmp_path) == ["x"]

"""read, write, append."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import moxing as mox

ROUND_TRIP = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@ROUND_TRIP
@given(first=st.binary(max_size=300), second=st.binary(max_size=300))
def test_bytes_come_back(tmp_path, first, second):
    url = str(tmp_path / "a.bin")
    mox.file.write(url, first, binary=True)
    assert mox.file.read(url, binary=True) == first
    mox.file.append(url, second, True)
    assert mox.file.read(url, None, True) == first + second
    assert mox.file.get_size(url) == len(first) + len(second)


@ROUND_TRIP
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=200))
def test_text_comes_back(tmp_path, text):
    url = str(tmp_path / "a.txt")
    mox.file.write(url, text)
    assert mox.file.read(url) == text
    assert (tmp_path / "a.txt").read_bytes() == text.encode()
    mox.file.append(url, text)
    assert mox.file.read(url, exist_check=False) == text * 2


@pytest.mark.parametrize("data", [bytearray(b"ab"), memoryview(b"ab"), np.frombuffer(b"ab", np.uint8)])
def test_whatever_holds_bytes_can_be_written(tmp_path, data):
    mox.file.write(tmp_path / "a", data, binary=True)
    assert mox.file.read(tmp_path / "a", binary=True) == b"ab"


@pytest.mark.parametrize("function", [mox.file.write, mox.file.append])
@pytest.mark.parametrize(
    ("data", "binary", "message"),
    [
        (b"x", False, "data is bytes.*binary=True"),
        (1, False, "data is int"),
        ("x", True, "data is str.*binary=False"),
        (1.5, True, "data is float"),
    ],
)
def test_data_of_the_wrong_kind_costs_nothing(tmp_path, function, data, binary, message):
    path = tmp_path / "a"
    path.write_text("kept")
    with pytest.raises(TypeError, match=message):
        function(path, data, binary=binary)
    with pytest.raises(UnicodeEncodeError):
        function(path, "\ud800")
    assert path.read_text() == "kept"
    assert os.listdir(tmp_path) == ["a"]


def test_missing_files_name_the_argument(tmp_path):
    for exist_check in (True, False):
        with pytest.raises(mox.file.MoxFileNotExistsException, match="url: no such file"):
            mox.file.read(tmp_path / "none", exist_check=exist_check)
    with pytest.raises(FileNotFoundError, match="url: the directory .*make_dirs"):
        mox.file.write(tmp_path / "none" / "a", "x")
    with pytest.raises(FileNotFoundError, match="url: its directory"):
        mox.file.append(tmp_path / "none" / "a", "x")
    with pytest.raises(FileNotFoundError, match="src_url"):
        mox.file.append_remote(tmp_path / "none", tmp_path / "b")
    assert os.listdir(tmp_path) == []
    for function in (mox.file.read, lambda url: mox.file.write(url, "x"), lambda url: mox.file.append(url, "x")):
        with pytest.raises(IsADirectoryError):
            function(tmp_path)


def test_text_that_is_not_utf_8_says_how_to_read_it(tmp_path):
    (tmp_path / "a").write_bytes(b"\xff\xfe")
    with pytest.raises(UnicodeDecodeError) as caught:
        mox.file.read(tmp_path / "a")
    assert "binary=True" in caught.value.__notes__[0]


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs a file that opens but cannot be read")
def test_a_failure_after_opening_is_a_read_exception():
    with pytest.raises(mox.file.MoxFileReadException, match="/proc/self/mem") as caught:
        mox.file.read("/proc/self/mem", binary=True)
    assert isinstance(caught.value, OSError)
    assert caught.value.resp is None


def test_append_remote(tmp_path):
    mox.file.write(tmp_path / "a", b"a" * 3_000_000, binary=True)
    mox.file.append_remote(str(tmp_path / "a"), dst_url=str(tmp_path / "b"))
    mox.file.append_remote(src_url=str(tmp_path / "a"), dst_url=str(tmp_path / "b"))
    assert mox.file.get_size(tmp_path / "b") == 6_000_000
    mox.file.write(tmp_path / "c", "xy")
    mox.file.append_remote(tmp_path / "c", tmp_path / "c")
    assert mox.file.read(tmp_path / "c") == "xyxy"

"""read, write, append, append_remote, and that nothing is ever half written."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time

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


def test_a_failing_write_keeps_the_old_content(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_text("old")

    def no_space(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        mox.file.write(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_flushed_to_the_disk_before_the_name_changes(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append("fsync"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda src, dst: (calls.append("replace"), replace(src, dst)))
    mox.file.write(tmp_path / "a", "x")
    mox.file.copy(tmp_path / "a", tmp_path / "b")
    assert calls == ["fsync", "replace", "fsync", "replace"]


def test_a_reader_never_sees_a_part(tmp_path):
    path = tmp_path / "a"
    contents = ["x" * 100_000, "y" * 100_000]
    mox.file.write(path, contents[0])
    done = threading.Event()

    def rewrite():
        for index in range(60):
            mox.file.write(path, contents[index % 2])
        done.set()

    writer = threading.Thread(target=rewrite)
    writer.start()
    seen = set()
    while not done.is_set():
        seen.add(mox.file.read(path))
    writer.join()
    assert seen <= set(contents)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_copy_leaves_no_half_file(tmp_path):
    script = (
        "import moxing as mox, moxing.framework.file.content as content, sys, time\n"
        "content._CHUNK = 1000\n"
        "class Slow:\n"
        "    def __init__(self, source): self.source = source\n"
        "    def read(self, n): time.sleep(0.02); print('.', flush=True); return self.source.read(n)\n"
        "import moxing.framework.file.transfer as transfer\n"
        "original = transfer.copy_stream\n"
        "transfer.copy_stream = lambda source, target: original(Slow(source), target)\n"
        "mox.file.copy(sys.argv[1], sys.argv[2])\n"
    )
    (tmp_path / "src").write_bytes(b"n" * 1_000_000)
    (tmp_path / "dst").write_bytes(b"old")
    for target in ("dst", "new"):
        process = subprocess.Popen(
            [sys.executable, "-c", script, tmp_path / "src", tmp_path / target], stdout=subprocess.PIPE
        )
        process.stdout.readline()
        process.stdout.readline()
        process.kill()
        process.wait()
        process.stdout.close()
    assert (tmp_path / "dst").read_bytes() == b"old"
    assert not (tmp_path / "new").exists()


def test_permissions(tmp_path):
    old = os.umask(0o027)
    try:
        mox.file.write(tmp_path / "new", "x")
        script = tmp_path / "run.sh"
        script.write_text("old")
        script.chmod(0o750)
        mox.file.write(script, "new")
        mox.file.copy(script, tmp_path / "copy.sh")
        mox.file.copy(tmp_path / "new", script)
    finally:
        os.umask(old)
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in os.listdir(tmp_path)}
    assert modes == {"new": 0o640, "run.sh": 0o750, "copy.sh": 0o750}


def test_a_read_only_file_stays(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("old")
    # Root may write everything, so the answer is given here.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match="url: the file is read-only"):
        mox.file.write(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    mox.file.write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_device_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    time.sleep(0.05)
    mox.file.write(pipe, "through")
    reader.join(10)
    assert got == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_the_longest_name_a_disk_takes(tmp_path):
    path = tmp_path / ("n" * 255)
    mox.file.write(path, "x")
    assert mox.file.read(path) == "x"

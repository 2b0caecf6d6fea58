"""Files that are replaced as a whole."""

import os
import stat
import threading
import time

import pytest

import moxing as mox


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

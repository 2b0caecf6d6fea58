"""Downloads: parts, resuming, faults, full disks."""

import os
import stat
import threading

import fault_proxy
import pytest
from large_object import LARGE

import moxing as mox
from moxing.framework.file.s3 import part_file
from moxing.framework.file.s3.clients import get_client

MB = 1 << 20


@pytest.mark.parametrize("fault", [fault for fault in fault_proxy.FAULTS if fault != "damage"])
def test_faults_during_a_download_in_parts(proxy, large, tmp_path, fault):
    mox.file.set_auth(client_timeout=0.7 if fault in ("slow", "silent") else 20)
    proxy.fail(fault, 2, lambda method, target: method == "GET")
    mox.file.copy(large, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == LARGE


def test_a_truncated_body_is_continued_where_it_ended(proxy, large):
    proxy.requests.clear()
    proxy.sent = 0
    proxy.fail("truncate", 1)
    assert mox.file.read(large, binary=True) == LARGE
    assert len(proxy.requests) == 2
    assert proxy.sent < 1.6 * len(LARGE)


def test_a_cut_off_download_is_continued(proxy, large, tmp_path):
    (tmp_path / "large").write_text("old")
    mox.file.set_auth(retry=0)
    seen = []

    def is_later_part(method, target):
        seen.extend([target] * (method == "GET" and target.endswith("/large")))
        return len(seen) > 2

    proxy.fail("reset", float("inf"), is_later_part)
    with pytest.raises(mox.file.MoxFileReadException):
        mox.file.copy_parallel(os.path.dirname(large), tmp_path, threads=1)
    assert (tmp_path / "large").read_text() == "old"
    (part,) = tmp_path.glob(".mox-*.part")
    proxy.fail("", 0)
    proxy.sent = 0
    mox.file.copy_parallel(os.path.dirname(large), tmp_path)
    assert (tmp_path / "large").read_bytes() == LARGE
    assert proxy.sent < 6 * MB
    assert os.listdir(tmp_path) == ["large"]
    assert not part.exists()


def test_a_device_is_written_to_and_not_replaced(large, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    mox.file.copy(large, pipe)
    # A file in place of the pipe would leave the reader waiting for ever.
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    reader.join(10)
    assert got == [LARGE]
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_large_object_does_not_replace_a_read_only_file(large, tmp_path, monkeypatch):
    (tmp_path / "x").write_text("old")
    # Root may write everything, so the answer is given here.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match="dst_url: the file is read-only"):
        mox.file.copy(large, tmp_path / "x")
    assert (tmp_path / "x").read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_a_damaged_large_object_is_noticed(proxy, s3_folder, tmp_path, monkeypatch):
    """One that was uploaded in one request has its MD5 as ETag."""
    client = get_client("s3")
    client.put("tests", f"{s3_folder}/one".removeprefix("s3://tests/"), LARGE)
    proxy.fail("damage", float("inf"))
    with pytest.raises(mox.file.MoxFileReadException, match="MD5"):
        mox.file.copy(f"{s3_folder}/one", tmp_path / "x")
    assert os.listdir(tmp_path) == []
    mox.file.set_auth(retry=1)
    with pytest.raises(mox.file.MoxFileReadException, match="MD5"):
        mox.file.read(f"{s3_folder}/one", binary=True)


def test_a_full_disk_is_no_failure_of_the_connection(large, tmp_path, monkeypatch):
    """It is told at once, not repeated as a request that failed."""
    calls = []

    def full(descriptor, content, offset):
        calls.append(offset)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(part_file.os, "pwrite", full)
    with pytest.raises(OSError, match="No space left") as caught:
        mox.file.copy_parallel(os.path.dirname(large), tmp_path, threads=1)
    assert caught.value.errno == 28
    assert len(calls) == len(set(calls))
    with pytest.raises(OSError, match="No space left"):
        mox.file.copy(large, tmp_path / "x")
    assert not (tmp_path / "x").exists()

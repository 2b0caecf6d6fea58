"""Copying one file."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from large_object import LARGE

import moxing as mox


def test_a_pipe_does_not_block_an_upload(s3_folder, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a").write_text("a")
    # Whoever waits for the other end of the pipe gets one.
    ends = []
    rescue = threading.Timer(5, lambda: ends.append(os.open(tmp_path / "pipe", os.O_RDWR)))
    rescue.start()
    try:
        with pytest.raises(OSError, match="src_url is not a regular file"):
            mox.file.copy_parallel(tmp_path, f"{s3_folder}/all")
        with pytest.raises(OSError, match="src_url is not a regular file"):
            mox.file.copy(tmp_path / "pipe", f"{s3_folder}/one")
        assert not ends
    finally:
        rescue.cancel()
        for end in ends:
            os.close(end)
    assert not mox.file.exists(f"{s3_folder}/all/pipe")
    assert not mox.file.exists(f"{s3_folder}/one")


def test_a_killed_copy_leaves_no_half_file(proxy, large, tmp_path):
    code = f"import moxing as mox; mox.file.set_auth(server={proxy.endpoint!r}); mox.file.copy({large!r}, 'x')"
    proxy.fail("silent", float("inf"), lambda method, target: method == "GET" and len(proxy.requests) > 2)
    proxy.requests.clear()
    child = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    while not list(tmp_path.glob(".mox-*.part")) or len(proxy.requests) < 3:
        assert child.poll() is None
    child.kill()
    child.wait()
    assert not (tmp_path / "x").exists()
    proxy.fail("", 0)
    mox.file.copy(large, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == LARGE
    assert os.listdir(tmp_path) == ["x"]


def test_between_two_kinds_of_stores(s3_folder, tmp_path):
    memory = f"memory://{os.urandom(8).hex()}"
    mox.file.write(f"{s3_folder}/a/x", "x")
    mox.file.copy_parallel(s3_folder, memory)
    mox.file.rename(f"{memory}/a", f"{s3_folder}/b")
    assert mox.file.list_directory(s3_folder, recursive=True) == ["a", "a/x", "b", "b/x"]
    mox.file.rename(f"{s3_folder}/b", tmp_path / "c")
    assert (tmp_path / "c" / "x").read_text() == "x"
    assert not mox.file.exists(f"{s3_folder}/b")
    mox.file.rename(tmp_path / "c" / "x", f"{s3_folder}/d")
    assert mox.file.read(f"{s3_folder}/d") == "x"
    assert not Path(tmp_path / "c" / "x").exists()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_local_copy_leaves_no_half_file(tmp_path):
    script = (
        "import moxing as mox, moxing.framework.file.copying.copy_file as copy_file, sys, time\n"
        "copy_file._CHUNK = 1000\n"
        "class Slow:\n"
        "    def __init__(self, source): self.source = source\n"
        "    def read(self, n): time.sleep(0.02); print('.', flush=True); return self.source.read(n)\n"
        "original = copy_file.shutil.copyfileobj\n"
        "copy_file.shutil.copyfileobj = lambda source, target, size: original(Slow(source), target, size)\n"
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

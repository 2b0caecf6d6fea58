"""Worker processes of a copy."""

import os
import signal
import subprocess
import sys
import threading

import pytest

import moxing as mox
from moxing.framework.file import file_io
from moxing.framework.file.copying import run_plan


@pytest.mark.parametrize("use_queue", [True, False])
def test_processes(s3_folder, tmp_path, monkeypatch, own_settings, store, use_queue):
    """What set_auth was told reaches the processes, and not by their environment or command line."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "S3_ENDPOINT"):
        monkeypatch.delenv(name)
    keys = store.environment
    mox.file.set_auth(keys["ACCESS_KEY_ID"], keys["SECRET_ACCESS_KEY"], keys["S3_ENDPOINT"])
    monkeypatch.setattr(run_plan, "_FILES_PER_PROCESS", 20)
    monkeypatch.setattr(run_plan, "_BATCH", 5)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    started = []
    original = subprocess.Popen.__init__

    def spy(self, arguments, **options):
        started.append(arguments)
        original(self, arguments, **options)

    monkeypatch.setattr(subprocess.Popen, "__init__", spy)
    # Scripts put such things there; Python itself ignores them.
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])
    names = [f"{n // 10}/{n}.txt" for n in range(100)]
    for name in names:
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    mox.file.copy_parallel(tmp_path / "src", s3_folder, use_queue=use_queue)
    assert len(started) == 2
    mox.file.copy_parallel(s3_folder, tmp_path / "dst", use_queue=use_queue)
    assert len(started) == 4
    assert {name: (tmp_path / "dst" / name).read_text() for name in names} == {name: name for name in names}
    assert not any(keys["SECRET_ACCESS_KEY"] in text for arguments in started for text in arguments)
    mox.file.copy_parallel(s3_folder, tmp_path / "again", is_processing=False)
    monkeypatch.setattr(file_io, "_NUMBER_OF_PROCESSES", 1)
    mox.file.copy_parallel(s3_folder, tmp_path / "again")
    assert len(started) == 4


def test_an_error_in_a_process_is_raised_here(proxy, s3_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(run_plan, "_FILES_PER_PROCESS", 20)
    monkeypatch.setattr(run_plan, "_BATCH", 5)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    for n in range(60):
        (tmp_path / f"{n}").write_text("x")
    mox.file.set_auth(retry=0)
    proxy.fail("503", float("inf"), lambda method, target: method == "PUT")
    with pytest.raises(mox.file.MoxFileRespException) as caught:
        mox.file.copy_parallel(tmp_path, s3_folder)
    assert (caught.value.resp.status, caught.value.resp.code) == (503, "SlowDown")


def test_an_interrupt_while_the_processes_are_waited_for(proxy, s3_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(run_plan, "_FILES_PER_PROCESS", 2)
    monkeypatch.setattr(run_plan, "_BATCH", 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    for name in ("own-1", "own-2", "theirs-1", "theirs-2"):
        (tmp_path / name).write_text("x")
    processes = []
    original_start, original_join = subprocess.Popen.__init__, threading.Thread.join

    def spy(self, *args, **options):
        processes.append(self)
        original_start(self, *args, **options)

    interrupts = ["one"]

    def interrupt(self, timeout=None):
        if self.name == "mox-feed" and interrupts:
            interrupts.clear()
            raise KeyboardInterrupt
        original_join(self, timeout)

    monkeypatch.setattr(subprocess.Popen, "__init__", spy)
    monkeypatch.setattr(threading.Thread, "join", interrupt)
    proxy.fail("silent", float("inf"), lambda method, target: method == "PUT" and "theirs" in target)
    with pytest.raises(KeyboardInterrupt):
        mox.file.copy_parallel(tmp_path, s3_folder, file_list=sorted(os.listdir(tmp_path)), use_queue=False)
    assert [process.returncode for process in processes] == [-signal.SIGKILL]
    assert mox.file.list_directory(s3_folder) == ["own-1", "own-2"]

"""One training per directory."""

import json
import os
import signal
import subprocess
import sys

import pytest
from line_problem import run

from moxing.tensorflow.executor.checkpoints import lock
from moxing.tensorflow.executor.checkpoints.lock import LOCK, LogDirInUseError, train_in

#: Another process that trains: it holds the same lock, without TensorFlow.
HOLDER = """
import fcntl, json, os, sys
path = sys.argv[1]
stream = open(path, "w+")
fcntl.flock(stream, fcntl.LOCK_EX)
stream.write(json.dumps({"host": "elsewhere", "pid": 4711, "started": "2026-01-01 00:00:00"}))
stream.flush()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / LOCK)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_training_says_who_holds_the_directory(tmp_path, holder, monkeypatch):
    monkeypatch.setattr(lock, "_PATIENCE_SECONDS", 0.0)
    with pytest.raises(LogDirInUseError) as caught:
        run(log_dir=tmp_path)
    text = str(caught.value)
    assert f"log_dir='{tmp_path}' is in use: process 4711 on elsewhere, started 2026-01-01 00:00:00," in text
    assert os.listdir(tmp_path) == [LOCK]


def test_only_a_training_takes_it(tmp_path, tmp_path_factory, monkeypatch):
    """An evaluation of the same directory runs beside the training; the lock of a killed process is free."""
    assert run(log_dir=tmp_path).global_step == 3
    assert LOCK not in os.listdir(tmp_path)
    monkeypatch.setattr(lock, "_PATIENCE_SECONDS", 0.0)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / LOCK)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdout.readline()
    assert run("EVAL", log_dir=tmp_path).log_info["w"] == -3
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert run(log_dir=tmp_path, max_number_of_steps=4).global_step == 4


def test_a_restarted_job_waits_for_the_old_process(tmp_path, holder, monkeypatch, caplog):
    monkeypatch.setattr(lock.time, "sleep", lambda seconds: holder.communicate())
    with train_in(str(tmp_path)):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    assert "waiting for its end" in caplog.text
    assert not (tmp_path / LOCK).exists()


def test_a_forked_child_does_not_keep_it(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "_PATIENCE_SECONDS", 0.0)
    reading, writing = os.pipe()
    with train_in(str(tmp_path)):
        child = os.fork()
        if not child:
            os.read(reading, 1)
            os._exit(0)
    (tmp_path / LOCK).touch()
    with train_in(str(tmp_path)):
        pass
    os.write(writing, b"x")
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)


def test_directories_that_cannot_be_used(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    cases = {
        "file": (NotADirectoryError, "log_dir: a file has this name"),
        "file/below": (NotADirectoryError, "log_dir: cannot be created: not a directory"),
        "link": (FileNotFoundError, "log_dir: a link to .*gone', which does not exist"),
        "n" * 300: (OSError, "log_dir: cannot be created: file name too long"),
    }
    for name, (kind, text) in cases.items():
        with pytest.raises(kind, match=text) as caught:
            run(log_dir=tmp_path / name)
        assert caught.value.filename == str(tmp_path / name)
    # Root writes everywhere.
    refuse = PermissionError(13, "Permission denied")
    monkeypatch.setattr(lock.os, "open", lambda *args: (_ for _ in ()).throw(refuse))
    with pytest.raises(PermissionError, match="log_dir: cannot be written: permission denied"):
        with train_in(str(tmp_path)):
            pass

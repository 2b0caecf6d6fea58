"""Readers: both give the same bytes, and a reading process may die or stay behind without harm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from helpers.warm import HERE, PIPE, Program, WarmProcess
from moxing.tensorflow.datasets.reader.readers import AsyncRawGenerator, ParallelReader, Reader, make_reader

CONTENTS = {
    b"plain.jpg": b"content",
    b"zeros": b"a\0b\0\0",
    b"new\nline": b"\n\r\n",
    b"not utf8 \xff\xfe": b"\xff\xd8",
    "Gänseblümchen 雏菊".encode(): b"daisy",
    b"large": bytes(range(256)) * 40_000,
}


def objects(values) -> np.ndarray:
    return np.array([*values, None], object)[:-1]


@pytest.fixture
def paths(tmp_path) -> np.ndarray:
    folder = os.fsencode(tmp_path)
    for name, content in CONTENTS.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
    return objects(os.path.join(folder, name) for name in CONTENTS)


def contents(reader: Reader, paths: np.ndarray) -> list[bytes]:
    """What comes out in the graph; b'bad' for what fails."""
    with tf.Graph().as_default(), tf.Session() as session:
        fetched = tf.placeholder(tf.string, [])
        read = reader.read(fetched)
        values = []
        for value in reader.fetch(paths):
            try:
                values.append(session.run(read, {fetched: value}))
            except tf.errors.OpError:
                values.append(b"bad")
    return values


def running(process_id: int) -> bool:
    try:
        with open(f"/proc/{process_id}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition, seconds=30) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def child_processes(parent: int) -> list[int]:
    command = ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(parent)]
    listed = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    return [int(line.split()[0]) for line in listed if "reading_process" in line]


@pytest.fixture
def started():
    """The reading processes that this test has started; those of others may still be about."""
    before = set(child_processes(os.getpid()))
    return lambda: [process for process in child_processes(os.getpid()) if process not in before]


@pytest.fixture
def generator():
    reader = AsyncRawGenerator(num_readers=2, num_processes=1)
    yield reader
    del reader


def test_both_readers_give_the_same(paths, generator):
    assert contents(ParallelReader(8), paths) == list(CONTENTS.values())
    assert contents(generator, paths) == list(CONTENTS.values())


@pytest.mark.parametrize("kind", ["missing", "folder", "forbidden", "a file in between"])
def test_what_cannot_be_read_fails_and_nothing_else(paths, generator, tmp_path, kind):
    broken = tmp_path / "broken"
    if kind == "folder":
        broken.mkdir()
    elif kind == "forbidden":
        broken.write_bytes(b"x")
        broken.chmod(0)
        if os.access(broken, os.R_OK):
            pytest.skip("this user may read everything")
    elif kind == "a file in between":
        broken = tmp_path / "plain.jpg" / "x"
    asked = objects([paths[0], os.fsencode(broken), paths[1]])
    wanted = [b"content", b"bad", b"a\0b\0\0"]
    assert contents(generator, asked) == wanted
    assert contents(ParallelReader(1), asked) == wanted


def test_a_killed_process_is_replaced(started, paths, generator, caplog):
    generator.fetch(paths)
    (process,) = started()
    os.kill(process, signal.SIGKILL)
    assert generator.fetch(paths).tolist() == list(CONTENTS.values())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "exit code -9" in caplog.text


def test_a_process_killed_in_the_middle_of_an_answer(started, paths, generator, tmp_path, caplog):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    generator.fetch(paths[:1])
    (process,) = started()

    def kill_it_and_serve_the_next():
        with open(pipe, "wb"):  # opened when the process has come to it
            os.kill(process, signal.SIGKILL)
            wait_until(lambda: not running(process))
        with open(pipe, "wb") as file:
            file.write(b"from the pipe")

    killer = threading.Thread(target=kill_it_and_serve_the_next, daemon=True)
    killer.start()
    asked = objects([paths[-1], os.fsencode(pipe), paths[0]])
    assert generator.fetch(asked).tolist() == [CONTENTS[b"large"], b"from the pipe", b"content"]
    killer.join()
    assert len([record for record in caplog.records if "died" in record.message]) == 1


def test_processes_that_die_again_and_again_are_an_error(paths, monkeypatch, caplog):
    reader = AsyncRawGenerator(num_readers=1)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match=r"died 4 times \(exit code 1\)"):
        reader.fetch(paths)


def test_an_interrupt_from_the_keyboard_is_not_for_the_reading_process(started, paths, generator, caplog):
    generator.fetch(paths)
    (process,) = started()
    os.kill(process, signal.SIGINT)
    time.sleep(0.2)
    assert generator.fetch(paths).tolist() == list(CONTENTS.values())
    assert started() == [process]
    assert not caplog.records


def test_the_processes_end_with_their_reader(started, paths):
    reader = AsyncRawGenerator(num_readers=4, num_processes=1)
    reader.fetch(paths)
    (process,) = started()
    del reader
    assert wait_until(lambda: not running(process))


PARENT = """
import os, sys, threading
import numpy as np
from moxing.tensorflow.datasets.reader.readers import AsyncRawGenerator

reader = AsyncRawGenerator(num_readers=2, num_processes=2)
paths = np.array([*(os.fsencode(path) for path in sys.argv[2:] * 64), None], object)[:-1]

def work():
    while True:
        reader.fetch(paths)
        ready.release()

ready = threading.Semaphore(0)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
for _ in range(4):
    ready.acquire()
print("ready", flush=True)
sys.stdin.read()
"""


def test_the_processes_end_with_their_parent_however_it_ends(paths):
    words = [os.fsdecode(path) for path in paths[:2]]
    parents = [
        WarmProcess(Program("code", PARENT, (how, *words)), HERE, PIPE, PIPE, PIPE) for how in ("ends", "is killed")
    ]
    readers = []
    for parent in parents:
        assert parent.stdout.readline() == "ready\n"
        readers.append(child_processes(parent.pid))
        assert len(readers[-1]) == 2
    parents[1].kill()
    for parent, children in zip(parents, readers, strict=True):
        _, complaints = parent.communicate(timeout=60)
        assert wait_until(lambda children=children: not any(map(running, children)))
        assert "Traceback" not in complaints, complaints
    assert parents[0].returncode == 0


def test_number_of_processes(paths):
    assert AsyncRawGenerator(num_readers=1).fetchers == 1
    assert AsyncRawGenerator(num_readers=1000).fetchers == os.cpu_count()
    assert AsyncRawGenerator(num_readers=2, num_processes=3).fetchers == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("AsyncRawGenerator", 8, None), r"reader_class='AsyncRawGenerator': expected mox.AsyncRawGenerator"),
        ((dict, 8, None), "reader_class=<class 'dict'>"),
        ((ParallelReader(8), 8, None), "reader_class="),
        ((AsyncRawGenerator, 8, {"threads": 3}), r"reader_kwargs=\{'threads': 3\}: AsyncRawGenerator.*'threads'"),
        ((None, 8, {"num_processes": 3}), "reader_kwargs=.*ParallelReader"),
        ((AsyncRawGenerator, 8, {"num_processes": 0}), "num_processes=0: expected a number from 1"),
        ((AsyncRawGenerator, 8, {"num_processes": 2.5}), "num_processes=2.5"),
        ((AsyncRawGenerator, "8", None), "num_readers='8': expected a number from 1"),
        ((AsyncRawGenerator, 0, None), "num_readers=0"),
        ((AsyncRawGenerator, 8, [1]), r"reader_kwargs=\[1\]"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_reader(*arguments)


def test_a_reader_of_the_users_own():
    class Own(ParallelReader):
        pass

    assert type(make_reader(Own, 3, {})) is Own
    assert make_reader(AsyncRawGenerator, 3, {"num_processes": 2}).fetchers == 2

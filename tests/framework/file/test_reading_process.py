"""The reading process: questions and answers over pipes."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys

import pytest

from moxing.framework.file.reading_process import COUNT, LENGTH, serve


def question(*paths: bytes) -> bytes:
    return COUNT.pack(len(paths)) + b"".join(COUNT.pack(len(path)) + path for path in paths)


def answered(answer: bytes) -> list[bytes | None]:
    stream, contents = io.BytesIO(answer), []
    while header := stream.read(LENGTH.size):
        (length,) = LENGTH.unpack(header)
        contents.append(None if length < 0 else stream.read(length))
    return contents


@pytest.fixture
def process():
    started = subprocess.Popen(
        [sys.executable, "-m", "moxing.framework.file.reading_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    yield started
    started.kill()
    started.communicate()


def test_contents_in_the_order_of_the_question(tmp_path):
    folder = os.fsencode(tmp_path)
    contents = {b"a": b"1\0\n", b"empty": b"", b"line\nend": b"2", b"\xff\xfe": bytes(range(256)), "é".encode(): b"3"}
    for name, content in contents.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
    asked = [os.path.join(folder, name) for name in [*contents, b"missing", b"a/b", b"", b"a"]]
    answers = io.BytesIO()
    serve(io.BytesIO(question(*asked) + question() + question(asked[0])), answers)
    assert answered(answers.getvalue()) == [*contents.values(), None, None, None, b"1\0\n", b"1\0\n"]


@pytest.mark.slow
def test_what_is_no_path_is_only_unreadable():
    answers = io.BytesIO()
    serve(io.BytesIO(question(b"a\0b", b"", b"x" * 10_000, b"s3://bucket/a", b"~/none")), answers)
    assert answered(answers.getvalue()) == [None] * 5


@pytest.mark.parametrize("cut", [1, 4, 6, 9])
def test_a_question_that_is_cut_ends_it(cut):
    answers = io.BytesIO()
    serve(io.BytesIO(question(b"/none", b"/none2")[:cut]), answers)
    assert all(content is None for content in answered(answers.getvalue()))


def test_a_question_longer_than_a_pipe_and_an_answer_too(process, tmp_path):
    path = tmp_path / ("x" * 200)
    path.write_bytes(b"content" * 1000)
    asked = question(*[os.fsencode(path)] * 1000)
    assert len(asked) > 2 * 65536
    output, complaints = process.communicate(asked, timeout=60)
    assert answered(output) == [b"content" * 1000] * 1000
    assert (process.returncode, complaints) == (0, b"")


def test_it_ignores_interrupts_and_ends_with_its_input(process):
    process.stdin.write(question(b"/none"))
    process.stdin.flush()
    assert process.stdout.read(LENGTH.size) == LENGTH.pack(-1)
    process.send_signal(signal.SIGINT)
    assert process.communicate(question(b"/none"), timeout=60) == (LENGTH.pack(-1), b"")
    assert process.returncode == 0


def test_it_ends_quietly_when_nobody_listens(process, tmp_path):
    large = tmp_path / "large"
    large.write_bytes(bytes(10**6))
    process.stdin.write(question(*[os.fsencode(large)] * 10))
    process.stdin.flush()
    assert process.stdout.read(LENGTH.size) == LENGTH.pack(10**6)
    process.stdout.close()
    process.stdin.close()
    assert process.wait(60) == 0
    assert process.stderr.read() == b""
    process.stdin = process.stdout = None


def test_it_does_not_import_tensorflow(process):
    process.stdin.write(question(b"/none"))
    process.stdin.flush()
    process.stdout.read(LENGTH.size)
    with open(f"/proc/{process.pid}/maps") as file:
        assert "tensorflow" not in file.read()

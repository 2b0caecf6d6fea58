"""A child process behind pipes: it ends with its input or its parent, and ignores interrupts."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

ECHO = """
from moxing.framework.util.child_server import serve_parent

def serve(requests, responses):
    for line in requests:
        responses.write(line.upper())
        responses.flush()

serve_parent(serve)
"""


@pytest.fixture
def child():
    command = [sys.executable, "-c", ECHO]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes) as process:
        yield process
        process.kill()


def ask(child, line):
    child.stdin.write(line)
    child.stdin.flush()
    return child.stdout.readline()


def test_it_ends_with_its_input(child):
    assert ask(child, b"a\n") == b"A\n"
    assert child.communicate(timeout=60) == (b"", b"")
    assert child.returncode == 0


def test_an_interrupt_from_the_keyboard_is_for_the_parent(child):
    ask(child, b"a\n")
    child.send_signal(signal.SIGINT)
    assert ask(child, b"b\n") == b"B\n"


def test_a_parent_that_is_gone_is_no_error(child):
    ask(child, b"a\n")
    child.stdout.close()
    child.stdin.write(b"b\n")
    child.stdin.flush()
    assert child.wait(timeout=60) == 0
    assert child.stderr.read() == b""

"""One process of a cluster: its exit code, its log, and how it is ended."""

from __future__ import annotations

import selectors
import signal
import sys
import time

import pytest

from moxing.cli.cluster.output import Screen
from moxing.cli.cluster.process import ProcessSpec, RoleProcess

SLEEP = "import time; time.sleep(600)"


@pytest.fixture
def start(tmp_path):
    """Starts a process that runs a line of Python."""
    started = []
    with selectors.DefaultSelector() as selector:

        def start(code, number=1):
            spec = ProcessSpec("worker 3", 0, [sys.executable, "-c", code], tmp_path, number)
            started.append(RoleProcess(spec, selector, Screen()))
            return started[-1]

        yield start
        for process in started:
            process.close()


def ended(process):
    until = time.monotonic() + 60
    while process.code is None and time.monotonic() < until:
        process.poll()
    return process.code


@pytest.mark.parametrize(
    ("code", "expected", "words"),
    [
        ("pass", 0, "ended with exit code 0"),
        ("raise SystemExit(3)", 3, "ended with exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", 137, "was killed by SIGKILL"),
    ],
)
def test_exit_codes(start, code, expected, words):
    process = start(code)
    assert ended(process) == expected
    assert process.how_it_ended == words
    assert not process.asked_to_end


def test_the_log_has_both_streams_and_the_number_of_a_restart(start, tmp_path, capfd):
    code = "import sys; print('out'); print('err', file=sys.stderr)"
    ended(start(code))
    ended(start(code, number=2))
    text = (tmp_path / "worker-3.log").read_text()
    assert sorted(text.splitlines()) == ["--- start 2 ---", "err", "err", "out", "out"]
    shown = capfd.readouterr()
    assert shown.out == "worker 3 | out\n" * 2 and shown.err == "worker 3 | err\n" * 2


def test_asked_to_end_and_killed(start):
    first, second = start(SLEEP), start(SLEEP)
    first.ask_to_end(signal.SIGTERM)
    assert ended(first) == 128 + signal.SIGTERM and first.asked_to_end
    second.kill()
    assert ended(second) == 128 + signal.SIGKILL and second.asked_to_end

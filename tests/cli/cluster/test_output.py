"""Lines of many processes on one screen."""

import io
import itertools
import os
import pty
import subprocess
import sys

import pytest

from moxing.cli.cluster.output import LineSplitter, Screen

TEXT = b"one\ntwo\r\n\nthree\r\r\nfour\n"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_lines_are_whole_however_they_arrive(size):
    splitter = LineSplitter()
    lines = list(
        itertools.chain.from_iterable(
            # No state of a progress bar is due between the bytes of a line's end.
            splitter.feed(TEXT[at : at + size], now=float("-inf"))
            for at in range(0, len(TEXT), size)
        )
    )
    assert lines == [b"one", b"two", b"", b"three", b"four"]
    assert splitter.rest() == []


def test_a_line_end_in_two_parts_gives_the_line_once():
    splitter = LineSplitter()
    assert splitter.feed(b"done\r", now=10.0) == [b"done"]
    assert splitter.feed(b"\nnext\n", now=10.1) == [b"next"]
    # Within the second the state waits, and its line's end turns it into a line.
    assert splitter.feed(b"more\r", now=10.2) == []
    assert splitter.feed(b"\n", now=10.3) == [b"more"]
    assert splitter.rest() == []


def test_a_progress_bar_shows_its_latest_state_once_a_second():
    splitter = LineSplitter()
    shown = []
    for step in range(50):
        now = 100 + step / 10
        shown += splitter.feed(b"\rstep %d" % step, now) + splitter.due(now)
    # A state is complete with the carriage return before the next one.
    assert shown == [b"step 0", b"step 10", b"step 20", b"step 30", b"step 40"]
    assert splitter.feed(b"\rstep 50\n", 105.0) == [b"step 50"]
    assert splitter.rest() == []


def test_what_is_left_at_the_end_is_shown():
    splitter = LineSplitter()
    assert splitter.feed(b"1%\r2%\r", now=0.0) == [b"2%"]
    assert splitter.feed(b"3%\r   \rtail", now=0.1) == []
    assert splitter.rest() == [b"3%", b"tail"]
    assert splitter.rest() == []


@pytest.mark.slow
def test_a_line_without_end_does_not_fill_the_memory():
    splitter = LineSplitter()
    lines = [line for _ in range(64) for line in splitter.feed(b"x" * 65536, now=0.0)]
    assert len(lines) == 4
    assert b"".join([*lines, *splitter.rest()]) == b"x" * 64 * 65536


def test_prefixes(capfdbinary):
    screen = Screen()
    screen.show(1, "worker 0", 0, [b"one", b"\xff\xfe"])
    screen.show(2, "ps 0", 1, [b"two"])
    screen.show(2, "ps 0", 1, [])
    screen.say("three")
    output, errors = capfdbinary.readouterr()
    assert output == b"worker 0 | one\nworker 0 | \xff\xfe\n"
    assert errors == b"ps 0 | two\nmoxing run: three\n"


def test_a_stream_of_text_only_and_none_at_all(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", None)
    screen = Screen()
    screen.show(1, "worker 0", 0, [b"one \xff"])
    screen.say("nobody hears it")
    assert stream.getvalue() == "worker 0 | one \ufffd\n"


SCRIPT = """
from moxing.cli.cluster.output import Screen
screen = Screen()
screen.show(1, "worker 0", 0, [b"one"])
screen.show(1, "worker 1", 1, [b"two"])
screen.show(2, "worker 1", 1, [b"three"])
"""


def on_a_terminal(**variables):
    """What the script writes to a terminal as its standard output, and to a pipe as its standard error."""
    main, end = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM")}
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        stdout=end,
        stderr=subprocess.PIPE,
        env=environment | {"TERM": "xterm"} | variables,
        check=True,
    )
    os.close(end)
    output = os.read(main, 10000).replace(b"\r\n", b"\n")
    os.close(main)
    return output, result.stderr


def test_each_process_has_its_colour_on_a_terminal():
    output, errors = on_a_terminal()
    assert output == b"\033[36mworker 0 | \033[0mone\n\033[33mworker 1 | \033[0mtwo\n"
    assert errors == b"worker 1 | three\n"


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_where_they_are_not_wanted(variables):
    assert on_a_terminal(**variables)[0] == b"worker 0 | one\nworker 1 | two\n"


def test_an_output_that_nobody_reads_is_noticed():
    code = """
import os, sys
from moxing.cli.cluster.output import Screen
screen = Screen()
reading, writing = os.pipe()
os.close(reading)
os.dup2(writing, 1)
screen.show(1, "worker 0", 0, [b"one"])
screen.show(1, "worker 0", 0, [b"two"])
sys.exit(7 if screen.is_gone else 0)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (result.returncode, result.stderr) == (7, b"")

"""What the commands print."""

import argparse
import io
import sys

import pytest

from moxing.cli import output


def test_characters_that_the_terminal_lacks(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    output.show("花\udcff a")
    stream.flush()
    assert stream.buffer.getvalue() == b"?? a\n"


def test_tables_are_aligned(capsys):
    output.show_table([("name", "size", "kind"), ("a", "1,000", "x")], left=(0, 2))
    assert capsys.readouterr().out == "  name   size  kind\n  a     1,000  x\n"


@pytest.mark.parametrize("text", ["", "train", "train:0", "train:x", "train:0.5,train:0.5", ":1"])
def test_wrong_splits(text):
    with pytest.raises(argparse.ArgumentTypeError, match="expected splits and fractions such as"):
        output.parse_splits(text)


def test_sizes_and_counts():
    assert output.parse_splits(" train:0.9, eval:0.1") == {"train": 0.9, "eval": 0.1}
    assert [output.human_size(n) for n in (0, 999, 1000, 999_949, 999_950, 10**18)] == [
        *("0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "1000.0 PB"),
    ]
    assert output.format_counts({"b": 2, "a": 2, "c": 10}) == "10 c, 2 a, 2 b"
    assert (output.file_count(0), output.file_count(1)) == ("0 files", "1 file")


def test_control_characters_do_not_reach_a_terminal(monkeypatch):
    class Screen(io.StringIO):
        encoding = "utf-8"

        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdout", screen := Screen())
    output.show("a\x1b[31mb\x07\x9b c\td")
    assert screen.getvalue() == "a?[31mb?? c\td\n"

"""Which scripts `moxing enable` runs with the launcher."""

import os
import sys

import pytest

from moxing.cli import autorun


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import moxing.tensorflow as mox", True),
        ("from moxing import tensorflow", True),
        ("from moxing.tensorflow import run", True),
        ("def f():\n    import moxing.tensorflow.utils", True),
        ("import moxing as mox", False),
        ("from moxing import file", False),
        ("from .moxing import tensorflow", False),
        ("text = 'import moxing.tensorflow'", False),
        ("print 'Python 2'\nimport moxing.tensorflow as mox", True),
        ("print 'Python 2'\n# import moxing.tensorflow", False),
        ("\0", False),
    ],
)
def test_scripts_that_import_the_trainer(source, expected):
    assert autorun.imports_trainer(source.encode()) is expected


def test_a_process_is_replaced_once(monkeypatch):
    commands = []
    monkeypatch.setattr(os, "execv", lambda program, words: commands.append(words))
    monkeypatch.setenv("MOXING_AUTORUN", "0")
    source = b"import moxing.tensorflow"
    autorun.start("train.py", source)
    autorun.start("train.py", source)
    assert len(commands) == 1 and commands[0][-3 - len(sys.argv) : -len(sys.argv)] == ["-m", "moxing", "run"]

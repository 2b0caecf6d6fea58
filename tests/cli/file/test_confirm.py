"""The question before many files are removed."""

import argparse
import io
import sys

import pytest

from moxing.cli.file.confirm import MANY_FILES, NotConfirmedError, confirm


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("files", "options", "answer", "asked", "refused"),
    [
        (MANY_FILES, {}, "", False, False),
        (MANY_FILES + 1, {}, "y\n", True, False),
        (MANY_FILES + 1, {}, "\n", True, True),
        (MANY_FILES + 1, {}, "", True, True),
        (MANY_FILES + 1, {"yes": True}, "", False, False),
        (MANY_FILES + 1, {"dry_run": True}, "", False, False),
        (1, {"interactive": True}, "yes\n", True, False),
        (1, {"interactive": True}, "no\n", True, True),
    ],
)
def test_when_the_question_is_asked(monkeypatch, files, options, answer, asked, refused):
    screen = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", screen)
    arguments = argparse.Namespace(**{"yes": False, "dry_run": False, "interactive": False, **options})
    if refused:
        with pytest.raises(NotConfirmedError, match="nothing was removed"):
            confirm(arguments, files, 2000, "data")
    else:
        confirm(arguments, files, 2000, "data")
    assert screen.getvalue().endswith("2.0 kB, in data? [y/N] ") == asked


def test_a_script_is_not_asked(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    confirm(argparse.Namespace(yes=False, dry_run=False, interactive=False), MANY_FILES + 1, 0, "data")

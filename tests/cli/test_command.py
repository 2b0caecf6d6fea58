"""How a command ends: one line, an exit code."""

import argparse

import pytest

from moxing.cli.command import light_runner, translate


def fails_with(error):
    def run(arguments):
        raise error

    return light_runner("moxing file ls", run, {"src_dir": "SRC"})(argparse.Namespace())


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ValueError("src_dir='a b': expected\n  a file"), 2, "moxing file ls: error: SRC='a b': expected a file\n"),
        (FileNotFoundError(2, "No such file", "/a"), 2, "moxing file ls: error: /a: No such file\n"),
        (OSError(5, "src_dir: unreadable", "/a"), 2, "moxing file ls: error: SRC='/a': unreadable\n"),
        (OSError("plain"), 2, "moxing file ls: error: plain\n"),
        (KeyboardInterrupt(), 130, "moxing file ls: interrupted\n"),
    ],
)
def test_errors(capsys, error, code, line):
    assert fails_with(error) == code
    assert capsys.readouterr().err == line


def test_other_errors_are_bugs_and_keep_their_traceback():
    with pytest.raises(ZeroDivisionError):
        fails_with(ZeroDivisionError())


def test_translation_leaves_quotes_and_paths_alone():
    names = {"size": "--size", "size=": "--size="}
    assert translate("size=3, 'size', /data/size, resize", names) == "--size=3, 'size', /data/size, resize"
    assert translate("nothing", {}) == "nothing"

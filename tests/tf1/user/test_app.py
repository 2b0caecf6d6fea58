"""`tf.app.run`."""

import sys
import types

import pytest

from moxing.framework import flags as moxing_flags
from moxing.framework import misspelled_flags
from moxing.tf1.user import app, flags


@pytest.fixture(autouse=True)
def no_flags(monkeypatch):
    monkeypatch.setattr(flags, "FLAGS", flags.FlagValues())
    flags.DEFINE_integer("epochs", 1, "Epochs", flag_values=flags.FLAGS)


def exit_code(*args):
    with pytest.raises(SystemExit) as ended:
        app.run(*args)
    return ended.value.code


def test_main_gets_the_arguments_that_are_not_flags():
    seen = []
    assert exit_code(lambda argv: seen.append(argv) or 3, ["train.py", "--epochs=2", "data", "--unknown"]) == 3
    assert seen == [["train.py", "data", "--unknown"]] and flags.FLAGS.epochs == 2


def test_the_defaults_are_those_of_the_process(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py", "--epochs", "5", "rest"])
    main = types.ModuleType("__main__")
    main.main = lambda argv: print(argv, flags.FLAGS.epochs)
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert exit_code() is None


def test_unknown_flags_are_ignored_with_a_warning(monkeypatch, caplog):
    # Not the modules of this process, which have these names in them.
    monkeypatch.setattr(misspelled_flags, "_user_sources", lambda: iter(["parser.add_argument('--mine')"]))
    moxing_flags.FLAGS.reset()
    words = ["--epoch=5", "--zzz", "7", "--noepochs", "--num_gpus=1", "--mine", "--workers", "2"]
    monkeypatch.setattr(sys, "argv", ["train.py", *words])
    assert exit_code(lambda argv: flags.FLAGS.epochs) == 1
    assert exit_code(lambda argv: 0) == 0  # it warns once
    ignored = "not a flag of MoXing or of this script."
    assert [message for message in caplog.messages if "Ignoring" in message] == [
        f"Ignoring --epoch: {ignored} Did you mean --epochs?",
        f"Ignoring --zzz: {ignored}",
        f"Ignoring --workers: {ignored} Options of moxing run come before the script.",
    ]
    moxing_flags.FLAGS.reset()

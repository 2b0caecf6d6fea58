"""`moxing checkpoint`: help and errors that all three commands share."""

import os
import subprocess
import sys

import pytest
from checkpoint_files import W, damaged, run, save


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere", "='nowhere': there is no such checkpoint. '.' contains [1].ckpt, bad.ckpt, one.ckpt."),
        ("log/m.ckpt-10", "='log/m.ckpt-10': there is no such checkpoint. 'log' contains m.ckpt."),
        ("no/such", "there is no such checkpoint. Pass the directory of a training, or a prefix."),
        ("", "='': expected a path."),
        ("void", "='void': the directory contains no checkpoint."),
        ("exported", "It is a SavedModel: pass 'exported/variables/variables'."),
        ("cut", "'cut/m.ckpt' is damaged: its values need 48 bytes, its data files have 47."),
        ("nodata/m.ckpt", "incomplete: none of the files nodata/m.ckpt.data-* exist"),
        ("noindex/m.ckpt", "'noindex/m.ckpt.index' is missing"),
        ("noindex/m.ckpt.data-00000-of-00001", "'noindex/m.ckpt.index' is missing"),
        ("cutindex/m.ckpt", "'cutindex/m.ckpt.index' is not a checkpoint, or it is truncated. Expected"),
        ("cutone.ckpt", "'cutone.ckpt' is not a checkpoint, or it is truncated. Expected"),
        ("bad.ckpt", "'bad.ckpt' is damaged ("),
        ("empty", "'empty' is empty. Expected"),
        ("weights.h5", "'weights.h5' is not a checkpoint (it is an HDF5 file, such as Keras writes)."),
        ("[1].ckpt", "contains one of * ? [ ]"),
    ],
)
def test_what_is_no_checkpoint_is_one_line_in_every_command(capsys, path, message):
    damaged()
    capsys.readouterr()
    for words, argument in ((("show", path), "PATH"), (("diff", path, "log"), "A"), (("diff", "log", path), "B"),
                            (("convert", path, "new/m.ckpt"), "SOURCE")):  # fmt: skip
        run(*words, code=2)
        out, err = capsys.readouterr()
        assert message in err and out == ""
        assert err.startswith(f"moxing checkpoint {words[0]}: error: {argument}") and err.count("\n") == 1
    assert not os.path.exists("new")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "m.ckpt", "--like", "nothing"), "--like='nothing' matches none of the 1 variables."),
        (("show", "m.ckpt", "--values", "nothing"), "--values='nothing' matches none of the 1 variables."),
        (("show", "m.ckpt", "--like", "("), "--like='(' is not a valid regular expression: "),
        (("show", "m.ckpt", "--values", "*"), "--values='*' is not a valid regular expression: "),
    ],
)
def test_expressions_that_do_not_help(capsys, words, message):
    save("m.ckpt", {"w": W})
    run(*words, code=2)
    assert f"moxing checkpoint show: error: {message}" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["show", "diff", "convert"])
def test_help_has_examples_and_the_exit_codes(capsys, command):
    with pytest.raises(SystemExit) as ended:
        run(command, "--help")
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert f"\n  moxing checkpoint {command} " in out and "\nexit codes: 0 " in out


def test_the_command_line_stays_light():
    code = (
        "import sys\nfrom moxing.cli import main\n"
        "try: main.main(['checkpoint', 'convert', '--help'])\nexcept SystemExit: pass\n"
        "print('tensorflow' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False False"

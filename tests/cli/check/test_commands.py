"""`moxing check`: output, files, exit codes."""

import json
import re
import sys
from pathlib import Path

import pytest

from moxing.cli.main import main

PROGRAM = "import tensorflow as tf\n\ntf.nn.relu(tf.contrib.hparams.x)\n"

#: The blocks of the page with the script and with the output.
KINDS = ("python check", "text")


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(PROGRAM)
    return "train.py"


def test_text(program, capsys):
    assert main(["check", program]) == 1
    out = capsys.readouterr().out
    assert out.startswith(
        "train.py: 66 %, 2 of 3 names are served\n\nMissing:\n  tf.contrib.hparams is not available; "
    )
    assert "    tf.contrib.hparams.x: train.py:3\n" in out
    assert out.endswith("Served by:\n  TensorFlow 2\n")


@pytest.mark.parametrize("page", ["check.md", "zh-CN/check.md"])
def test_the_output_in_the_documentation(program, tmp_path, page, capsys):
    text = (Path(__file__).resolve().parents[3] / "docs" / page).read_text(encoding="utf-8")
    script, shown = (re.search(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1] for kind in KINDS)
    (tmp_path / "train.py").write_text(script)
    assert main(["check", program]) == 1
    assert capsys.readouterr().out == shown


def test_all_is_well(program, tmp_path, capsys):
    (tmp_path / "train.py").write_text("import tensorflow as tf\ntf.nn.relu(1)\n")
    assert main(["check", "."]) == 0
    assert capsys.readouterr().out.endswith("Nothing is missing.\n")


def test_json_and_html(program, tmp_path, capsys):
    assert main(["check", ".", "--json", "--html", "report.html"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["judged"], told["missing"], told["files"][0]["path"]) == (3, 1, "train.py")
    page = (tmp_path / "report.html").read_text()
    assert "tf.contrib.hparams is not available" in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.py"], "none.py: No such file or directory"),
        (["empty"], "PATH='empty': there is no Python file in this directory"),
        (["train.py", "--html", "none/a.html"], "--html='none/a.html'"),
    ],
)
def test_bad_input(program, tmp_path, words, message, capsys):
    (tmp_path / "empty").mkdir()
    assert main(["check", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("moxing check: error: ") and message in error


def test_no_module_of_the_program_is_imported(tmp_path, monkeypatch):
    """Even if it is called as a library module, and its directory is on the path as with `python -m`."""
    ran = tmp_path / "ran"
    for name in ("train", "sklearn", "wave"):
        (tmp_path / f"{name}.py").write_text(f"open({str(ran)!r}, 'w').close()\n")
    (tmp_path / "main.py").write_text("import train, wave\nfrom sklearn import svm\nimport scipy.io.wavfile\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    before = list(sys.path)
    assert main(["check", "main.py"]) == 0
    assert not ran.exists()
    assert sys.path == before

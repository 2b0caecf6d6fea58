"""`moxing new`: what it prints, and what it refuses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.launcher import moxing
from moxing.cli.main import main
from moxing.cli.new.commands import tree
from moxing.cli.new.project import TEMPLATES

SHOWN = """\
my_project/
├── README.md
├── data.py
├── export.py
├── model.py
├── options.py
├── predict.py
├── scopes.py
├── tests
│   └── test_project.py
└── train.py

Next:
  cd my_project
  moxing run train.py --data_dir PHOTOS --log_dir log    # PHOTOS/<class>/<photo>
  moxing run export.py --log_dir log
  moxing run predict.py --model_dir log/export/servo photo.jpg
"""


def test_it_prints_the_tree_and_the_next_commands(tmp_path):
    done = moxing("new", "classifier", "my_project", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, SHOWN, "")
    assert "mox.run(" in (tmp_path / "my_project" / "train.py").read_text()


def test_it_needs_no_tensorflow(tmp_path):
    code = "import sys; from moxing.cli.main import main; main(); sys.exit('tensorflow' in sys.modules)"
    command = [sys.executable, "-c", code, "new", "classifier", "one"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0


def test_on_estimator(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "classifier", "two words", "--on", "estimator"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("two words/\n") and "├── model_fn.py\n" in printed and "  cd 'two words'\n" in printed
    assert "tf.estimator" in (tmp_path / "two words" / "train.py").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["classifer", "one"], "KIND='classifer': did you mean classifier?"),
        (["gan", "one"], "KIND='gan': expected classifier."),
        (["classifier", "one", "--on", "keras"], "--on='keras': expected mox or estimator."),
        (["classifier", "one", "--on", "Estimators"], "--on='Estimators': did you mean estimator?"),
        (["classifier", "full"], "DIR='full' exists and is not empty; use another name, such as full_2."),
        (["classifier", ""], "DIR='': expected the name of a new directory, such as my_project."),
    ],
)
def test_errors(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    assert main(["new", *words]) == 2
    assert capsys.readouterr().err == f"moxing new: error: {message}\n"
    assert sorted(os.listdir(tmp_path)) == ["full"] and os.listdir(tmp_path / "full") == ["file"]


def test_without_arguments_the_usage(capsys):
    with pytest.raises(SystemExit) as left:
        main(["new"])
    assert left.value.code == 2
    assert "usage: moxing new [-h] [--on BASE] KIND DIR" in capsys.readouterr().err


def test_a_tree():
    assert tree(["a", "b/c/d", "b/e", "f/g"]) == [
        "├── a",
        "├── b",
        "│   ├── c",
        "│   │   └── d",
        "│   └── e",
        "└── f",
    ] + ["    └── g"]


@pytest.mark.parametrize("page", ["new-project.md", "zh-CN/new-project.md"])
def test_the_manual_shows_what_is_printed(page):
    text = (Path(__file__).resolve().parents[3] / "docs" / page).read_text(encoding="utf-8")
    assert f"```text\n{SHOWN}```\n" in text


@pytest.mark.parametrize("page", ["new-project.md", "zh-CN/new-project.md"])
def test_the_manual_lists_every_option_of_train(page):
    text = (Path(__file__).resolve().parents[3] / "docs" / page).read_text(encoding="utf-8")
    program = (TEMPLATES / "classifier" / "common" / "options.py").read_text()
    options = set(re.findall(r'add_argument\(\s*"--(\w+)"', program)) | set(
        re.findall(r'^        \("(\w+)", ', program, re.M)
    )
    assert len(options) == 16
    rows = "".join(line for line in text.splitlines() if line.startswith("| `--"))
    assert {name for name in options if f"`--{name}`" not in rows} == set()

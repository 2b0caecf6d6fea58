"""`moxing lr`: what it draws is what training has."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from helpers.launcher import moxing
from moxing.cli.main import main


def run(*words, code=0):
    assert main(["lr", *words, "--samples", "100", "--batch", "10"]) == code


def test_the_picture_in_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    run("10:0.1,20:0.01")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("   0.1 ┤⠉⠉⠉") and len(lines[0]) < 40
    assert lines[11] == "     0 ┤" and all(len(line) <= 60 for line in lines)
    assert lines[12].strip() == "epoch 0 to 20: 200 steps of 10 samples"
    assert [line.split() for line in lines[13:]] == [
        ["epochs", "from", "step", "learning", "rate"],
        ["0", "to", "10", "0", "0.1"],
        ["10", "to", "20", "100", "0.01"],
    ]


def test_one_line_for_one_rate(capsys):
    run("0.002", "--epochs", "3")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("0.002 ┤") and "epoch 0 to 3: 30 steps" in lines[1] and "0 to ..." in lines[3]


def test_ascii_where_the_terminal_has_no_braille():
    environment = {"PYTHONIOENCODING": "ascii", "PATH": "", "PYTHONPATH": ":".join(sys.path)}
    done = moxing("lr", "1:0.1->0,2:0.5", "--samples", "1000", "--batch", "10", env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii() and "?" not in done.stdout and "*" in done.stdout


def test_png(tmp_path, capsys):
    run("10:0.1->0.5", "--png", str(tmp_path / "lr.png"))
    assert capsys.readouterr().out.endswith(f"Written: {tmp_path / 'lr.png'}\n")
    with Image.open(tmp_path / "lr.png") as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    assert pixels.shape == (480, 900, 3)
    blue = (pixels[..., 2] - pixels[..., 0] > 100).nonzero()
    # From the lower left to the upper right corner of the axes.
    assert (blue[1].min(), blue[1].max()) == (pytest.approx(80, abs=2), pytest.approx(875, abs=2))
    assert blue[0][blue[1].argmin()] > 330 and blue[0][blue[1].argmax()] < 60


def test_no_tensorflow():
    code = (
        "import sys; from moxing.cli.main import main; "
        "main(['lr', '1:0.1', '--samples', '10', '--batch', '1']); sys.exit('tensorflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["1:0.1,1:0.2"], "moxing lr: error: STRATEGY: wrong piece '1:0.2': epochs must rise"),
        (["1:0.1", "--epochs", "-1"], "moxing lr: error: --epochs=-1: expected a positive number."),
        (["1:0.1", "--png", "/nowhere/lr.png"], "moxing lr: error: /nowhere/lr.png: No such file"),
    ],
)
def test_errors(words, message, capsys):
    run(*words, code=2)
    assert capsys.readouterr().err.startswith(message)


def test_counts_must_be_positive(capsys):
    assert main(["lr", "1:0.1", "--samples", "0", "--batch", "10"]) == 2
    assert capsys.readouterr().err == "moxing lr: error: --samples (0): expected a positive number.\n"

"""`moxing demo`: the main job, from the data to predictions of the exported model."""

import json
import re
import sys

import numpy as np

from helpers.launcher import moxing
from moxing.cli import demo, main
from moxing.demo import predict


def test_the_demo_reads_held_out_digits(tmp_path):
    kept = tmp_path / "demo_output" / "run_1" / "from an earlier run"
    kept.mkdir(parents=True)
    result = moxing("demo", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    directory = tmp_path / "demo_output" / "run_2"
    assert kept.is_dir()

    accuracy = float(re.search(r"Accuracy on 360 held-out digits: ([\d.]+)%", result.stdout).group(1))
    assert accuracy >= 97
    right = int(re.search(r"exported model predicts (\d+) of 360 held-out digits correctly", result.stdout).group(1))
    assert abs(right / 360 - accuracy / 100) < 0.001
    assert len(re.findall(r"predicted: \d", result.stdout)) == 4
    assert len(re.findall(r"truth: +\d", result.stdout)) == 4

    assert "step: 0(global step: 0)\t" in result.stderr
    assert "[EVAL]" in result.stderr
    assert "\x1b" not in result.stdout + result.stderr
    assert json.loads((directory / "result.json").read_text())["accuracy"] >= 0.97
    assert (directory / "model.ckpt-1200.index").is_file()
    assert (directory / "1" / "saved_model.pb").is_file()
    assert f"tensorboard --logdir {directory.relative_to(tmp_path)}" in result.stdout


def test_without_scikit_learn_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert main.main(["demo"]) == 2
    assert "pip install 'moxing-tensorflow[demo]'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_made_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main.main(["demo", f"--dir={tmp_path / 'file'}"]) == 2
    assert f"--dir={tmp_path / 'file'}" in capsys.readouterr().err


def test_a_failing_program_ends_the_demo_with_its_code(tmp_path, monkeypatch, capfd):
    failing = [sys.executable, "-c", "import sys; sys.stderr.write('the reason'); sys.exit(3)"]
    assert demo.run_program(failing, quiet_errors=True) == 3
    assert capfd.readouterr().err == "the reason"
    noisy = [sys.executable, "-c", "import sys; sys.stderr.write('noise')"]
    assert demo.run_program(noisy, quiet_errors=True) == 0
    assert capfd.readouterr().err == ""
    killed = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"]
    assert demo.run_program(killed) == 143
    monkeypatch.setattr(demo, "run_program", lambda command, quiet_errors=False: 130)
    assert main.main(["demo", f"--dir={tmp_path}"]) == 130


def test_pictures():
    image = np.zeros((8, 8))
    image[2, 3] = 16
    lines = predict.picture(image)
    assert lines[2] == " " * 6 + "@@" + " " * 8
    assert {len(line) for line in lines} == {16}

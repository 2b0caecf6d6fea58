"""Tests of this project: `python -m pytest tests`. They train on drawn photos, which takes a minute or two."""

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

import data  # noqa: E402
import scopes  # noqa: E402

COLOURS = {"blue": (30, 40, 220), "green": (30, 200, 40), "red": (220, 40, 30)}
SMALL = ("--model_name", "cifarnet", "--image_size", "32", "--batch_size", "8")


def draw(folder, count=10):
    """Draws photos of three classes."""
    shades = random.Random(1)
    for name, colour in COLOURS.items():
        (folder / name).mkdir(parents=True)
        for number in range(count):
            shade = tuple(min(max(value + shades.randint(-25, 25), 0), 255) for value in colour)
            Image.new("RGB", (40 + number, 40), shade).save(folder / name / f"{number}.jpg")
    return folder


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return draw(tmp_path_factory.mktemp("photos"))


def run(script, *words):
    command = [sys.executable, "-m", "moxing", "run", script, *map(str, words)]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=600)


def output_of(script, *words):
    done = run(script, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_train_resume_export_predict(photos, tmp_path):
    words = ("--data_dir", photos, "--log_dir", tmp_path, *SMALL, "--num_epochs")
    assert "step 3: " in output_of("train.py", *words, 1)
    assert "step 30: accuracy 1.000 on 6 validation photos" in output_of("train.py", *words, 10)
    assert "exported step 30 to " in output_of("export.py", "--log_dir", tmp_path)
    red, blue = photos / "red" / "1.jpg", photos / "blue" / "2.jpg"
    lines = output_of("predict.py", "--model_dir", tmp_path / "export" / "servo", red, blue).splitlines()
    assert re.fullmatch(rf"{red}: red \d+\.\d%", lines[0])
    assert re.fullmatch(rf"{blue}: blue \d+\.\d%", lines[1])


def test_the_split_is_the_same_every_time(photos):
    first, second = data.load_photos(photos, 0.2), data.load_photos(photos, 0.2)
    assert first.validation.paths == second.validation.paths
    assert not set(first.validation.paths) & set(first.training.paths)
    assert [list(first.validation.labels).count(label) for label in range(3)] == [2, 2, 2]
    assert first.class_names == ["blue", "green", "red"]


def test_scopes():
    names = ["net/conv1/weights", "net/conv10/weights", "net/logits/weights"]
    assert scopes.trained_variables(names, [], ["net/conv1"]) == names[1:]
    assert scopes.trained_variables(names, ["net/logits"], []) == names[2:]
    with pytest.raises(ValueError, match="--freeze_scopes: no variable is in the scope 'net/conv2'"):
        scopes.trained_variables(names, [], ["net/conv2"])


def test_a_wrong_option_is_found_before_the_training(photos, tmp_path):
    done = run(
        "train.py", "--data_dir", photos, "--log_dir", tmp_path / "log", *SMALL, "--freeze_scopes", "CifarNet/fc9"
    )
    assert done.returncode == 2
    assert "--freeze_scopes: no variable is in the scope 'CifarNet/fc9'" in done.stderr
    assert not (tmp_path / "log").exists()

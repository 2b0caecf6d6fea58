"""A project of 2019 on tf.estimator and TF-Slim, run from its own command lines.

`scripts/seed_estimator` has the published pieces unchanged, and our completion where the article only names a function.
"""

from __future__ import annotations

import random
import re
import shutil
import signal
import time
from pathlib import Path
from subprocess import PIPE, STDOUT

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from helpers import warm
from helpers.estimator_models import assert_equal, weights
from helpers.launcher import MAIN, output_of

PROJECT = Path(__file__).resolve().parent / "scripts" / "seed_estimator"
ARTICLE = Path(__file__).resolve().parent.parent.parent / "shared" / "seeds" / "004_0907706b4a475396.txt"
CHECKPOINT = Path("checkpoints") / "resnet_v1_50.ckpt"
BLOCKS = [f"resnet_v1_50/block{number}" for number in (1, 2, 3, 4)]
MOVING = ("moving_mean", "moving_variance")


@pytest.mark.skipif(not ARTICLE.is_file(), reason=f"the article is not at {ARTICLE}")
def test_the_published_pieces_are_unchanged():
    ours = [_lines(path.read_text()) for path in (PROJECT / "model.py", PROJECT / "train.py")]
    pieces = re.findall(r"```python\n(.*?)```", ARTICLE.read_text(), re.DOTALL)
    assert len(pieces) == 8
    for piece in map(_lines, pieces):
        assert any(piece in text for text in ours), piece


def _lines(text: str) -> str:
    """The lines without indentation and blank lines: the article indents a method in two ways."""
    return "\n".join(filter(None, (line.strip() for line in text.splitlines())))


def records_of(photos: Path, target: Path, train: int, val: int) -> list[str]:
    """Writes the TFRecords of photos, and returns the words of the command line that name them."""
    words = [f"--images_dir={photos}", f"--output_dir={target}", f"--num_train={train}", f"--num_val={val}"]
    output_of(PROJECT / "generate_tfrecord.py", *words)
    return [f"--train_record_path={target / 'train.record'}", f"--val_record_path={target / 'val.record'}"]


def accuracy(output: str) -> float:
    """The accuracy of the last evaluation."""
    return float(re.findall(r"Saving dict for global step \d+: Accuracy = ([0-9.]+)", output)[-1])


def predictions(model_dir: Path, photos: list[Path]) -> list[int]:
    """The classes that the exported model gives to photos, in a new process."""
    words = [f"--export_dir={model_dir / 'export' / 'servo'}", f"--images={','.join(map(str, photos))}"]
    output = output_of(PROJECT / "predict.py", *words)
    found = dict(re.findall(r"^(\S+\.jpg): class (\d+), probability", output, re.MULTILINE))
    assert len(found) == len(photos), output
    return [int(found[photo.name]) for photo in photos]


@pytest.mark.slow
def test_digits_are_trained_evaluated_and_served(tmp_path):
    """Without a pre-trained checkpoint, on small images; everything but the last layer is frozen."""
    from PIL import Image
    from sklearn.datasets import load_digits

    digits = load_digits()
    for label in (0, 1):
        (tmp_path / "digits" / str(label)).mkdir(parents=True)
        for index, image in enumerate(digits.images[digits.target == label][:12]):
            pixels = Image.fromarray((image * 15.9).astype(np.uint8)).resize((40, 40))
            pixels.save(tmp_path / "digits" / str(label) / f"{label}_{index:02}.jpg")
    records = records_of(tmp_path / "digits", tmp_path / "records", 8, 4)
    output = output_of(
        PROJECT / "train.py",
        *records,
        f"--model_dir={tmp_path / 'model'}",
        f"--scopes_to_freeze={','.join(['resnet_v1_50/conv1', *BLOCKS])}",
        *("--batch_size=4", "--input_size=32", "--num_steps=3"),
    )
    assert accuracy(output) in (0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1)
    assert "Loss for final step" in output
    trained = weights(tmp_path / "model")
    assert trained["global_step"] == 3
    assert {name for name in trained if name.endswith("/Momentum")} == {
        f"Predict/logits/{name}/Momentum" for name in ("biases", "weights")
    }
    named = [f"{label}_{index:02}" for label in (0, 1) for index in range(4)]
    photos = [tmp_path / "digits" / name[0] / f"{name}.jpg" for name in named]
    right = [int(name[0]) == found for name, found in zip(named, predictions(tmp_path / "model", photos), strict=True)]
    # The served model reads JPEG files as the evaluation did.
    assert np.mean(right) == pytest.approx(accuracy(output))


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.timeout(900)
def test_flowers_are_learned_with_frozen_layers(tmp_path, real_data):
    """The command is given twice with more steps: the second continues, and its accuracy is higher."""
    model_dir, flowers = tmp_path / "model", real_data / "flowers"
    frozen = ["resnet_v1_50/conv1", *BLOCKS[:3]]
    words = [
        *records_of(flowers, tmp_path / "records", 16, 8),
        f"--model_dir={model_dir}",
        f"--checkpoint_path={real_data / CHECKPOINT}",
        f"--scopes_to_freeze={','.join(frozen)}",
        *("--num_classes=5", "--batch_size=8", "--input_size=112", "--learning_rate=0.002"),
    ]
    before = accuracy(output_of(PROJECT / "train.py", *words, "--num_steps=1"))
    output = output_of(PROJECT / "train.py", *words, "--num_steps=25")
    assert "Restoring parameters from" in output and "model.ckpt-1" in output
    assert accuracy(output) > before + 0.2, (before, output)
    published, trained = weights(real_data / CHECKPOINT), weights(model_dir)
    for name in (name for name in trained if name.startswith("resnet_v1_50") and not name.endswith("Momentum")):
        changed = not np.array_equal(trained[name], published[name])
        # Frozen variables are not trained. Batch normalisation still keeps its averages, as slim does.
        assert changed == (name.endswith(MOVING) or not name.startswith(tuple(frozen))), name
    shown = [photo for kind in sorted(flowers.iterdir()) if kind.is_dir() for photo in sorted(kind.glob("*.jpg"))[:8]]
    classes = sorted(path.name for path in flowers.iterdir() if path.is_dir())
    found = predictions(model_dir, shown)
    right = [classes[number] == photo.parent.name for number, photo in zip(found, shown, strict=True)]
    assert np.mean(right) == pytest.approx(accuracy(output))


@pytest.mark.slow
@pytest.mark.realdata
def test_excluded_scopes_are_initialised_anew(tmp_path, real_data):
    """With a learning rate of 0 every variable keeps its first value; only moving averages change."""
    excluded = ["resnet_v1_50/conv1", "resnet_v1_50/block1"]
    output_of(
        PROJECT / "train.py",
        *records_of(real_data / "flowers", tmp_path / "records", 2, 2),
        f"--model_dir={tmp_path / 'model'}",
        f"--checkpoint_path={real_data / CHECKPOINT}",
        f"--checkpoint_exclude_scopes={','.join(excluded)}",
        *("--num_classes=5", "--batch_size=4", "--input_size=48", "--num_steps=1", "--learning_rate=0"),
    )
    published, first = weights(real_data / CHECKPOINT), weights(tmp_path / "model")
    compared = 0
    for name, value in first.items():
        if name.startswith("resnet_v1_50") and name.endswith(("weights", "gamma", "beta")):
            compared += 1
            if not name.startswith(tuple(excluded)):
                np.testing.assert_array_equal(value, published[name], err_msg=name)
            elif name.endswith("weights"):
                assert not np.array_equal(value, published[name]), name
                assert np.std(value) == pytest.approx(np.sqrt(2 / np.prod(value.shape[:3])), rel=0.1), name
            else:
                assert np.all(value == (1 if name.endswith("gamma") else 0)), name
    assert compared == 53 * 3


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.timeout(900)
def test_a_killed_training_resumes_bit_for_bit(tmp_path, real_data):
    """Crops and flips of the step are off: the random numbers of a step start anew in a new process."""
    project = shutil.copytree(PROJECT, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__"))
    script = project / "train.py"
    text, published = script.read_text(), "model_dir=FLAGS.model_dir)"
    assert text.count(published) == 1
    config = "tf.estimator.RunConfig(save_checkpoints_steps=4, tf_random_seed=11)"
    script.write_text(text.replace(published, f"{published[:-1]}, config={config})"))
    common = [
        *records_of(real_data / "flowers", tmp_path / "records", 8, 2),
        f"--checkpoint_path={real_data / CHECKPOINT}",
        f"--scopes_to_freeze={','.join(BLOCKS[:3])}",
        *("--num_classes=5", "--batch_size=6", "--input_size=48", "--learning_rate=0.01", "--norandom_crop"),
    ]
    model_dir = tmp_path / "killed"
    words = ["run", script, *common, f"--model_dir={model_dir}", "--num_steps=100000"]
    program = warm.Program("moxing", MAIN, tuple(map(str, words)))
    with warm.WarmProcess(program, warm.Surroundings(tmp_path), stdout=PIPE, stderr=STDOUT) as process:
        try:
            deadline = time.monotonic() + warm.DEADLINE
            while not (model_dir / "model.ckpt-4.index").exists():
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.02)
            time.sleep(random.uniform(0, 4))  # anywhere: in a step or while a checkpoint is written
        finally:
            process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    reached = int(tf.train.load_variable(str(model_dir), "global_step"))
    assert reached >= 4
    last = f"--num_steps={reached + 6}"
    resumed = output_of(script, *common, f"--model_dir={model_dir}", last)
    assert f"Restoring parameters from {model_dir}/model.ckpt-{reached}" in resumed
    output_of(script, *common, f"--model_dir={tmp_path / 'whole'}", last)
    assert_equal(weights(model_dir), weights(tmp_path / "whole"))

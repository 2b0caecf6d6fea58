"""The complete programs of the manual, as they stand, from their own command lines.

Only data paths and sizes that would take hours are replaced, each replacement spelled out here. The programs and the
data lie beside the repository, so these tests skip where they are absent; `tests/cli` has scripts of our own.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from PIL import Image

from helpers.launcher import enabled_python, output_of

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "shared" / "seeds" / "scripts"

pytestmark = [
    pytest.mark.realdata,
    pytest.mark.skipif(not SCRIPTS.is_dir(), reason=f"the manual's programs are not at {SCRIPTS}"),
]


def script(tmp_path: Path, name: str, **replacements: str) -> Path:
    """A copy of a program of the manual with some of its text replaced; every text must be there."""
    text = (SCRIPTS / name).read_text()
    for old, new in replacements.items():
        assert old in text, old
        text = text.replace(old, new)
    copy = tmp_path / name
    copy.write_text(text)
    return copy


def run(*command: object, cwd: Path) -> str:
    """Runs a command to its end; returns what it printed."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def accuracy(output: str) -> float:
    return float(re.search(r"\[EVAL\] .*samples: 10000\taccuracy: ([0-9.]+)", output).group(1))


def test_getting_started_trains_and_evaluates(tmp_path, real_data):
    urls = [f"--data_url={real_data / 'mnist'}", f"--train_url={tmp_path / 'log'}", "--num_gpus=1"]
    output = output_of(script(tmp_path, "train_tf_mnist.py"), *urls)
    assert re.search(r"^INFO:tensorflow:step: 0\(global step: 0\)\tsample/sec: [0-9.]+\tloss: 2\.303$", output, re.M)
    assert "step: 2749(global step: 2749)" in output  # five epochs of 55,000 at batch 100
    assert accuracy(output_of(script(tmp_path, "eval_tf_mnist.py"), *urls)) >= 0.9


@pytest.mark.slow
def test_getting_started_with_plain_python_after_enable(tmp_path, real_data):
    """`moxing enable` in a virtual environment of its own, so that the one under test stays as it is."""
    python = enabled_python(tmp_path / "env")
    train = script(tmp_path, "train_tf_mnist.py")
    urls = [f"--data_url={real_data / 'mnist'}", f"--train_url={tmp_path / 'log'}"]
    assert "step: 2749(global step: 2749)" in run(python, train.name, *urls, cwd=tmp_path)
    assert accuracy(run(python, script(tmp_path, "eval_tf_mnist.py").name, *urls, cwd=tmp_path)) >= 0.9
    run(python, "-m", "moxing", "disable", cwd=tmp_path)
    off = subprocess.run([python, train.name, *urls], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert off.returncode != 0


def test_dcgan(tmp_path, real_data):
    smaller = {", 1024,": ", 32,", ", 512,": ", 16,", ", 256,": ", 8,", ", 128,": ", 8,", "=11000": "=20"}
    path = script(tmp_path, "manual_4_2_dcgan.py", **smaller, **{"/tmp/delete_me/dcgan_mnist": str(tmp_path / "log")})
    output = output_of(path, f"--data_url={real_data / 'mnist'}")
    assert re.search(r"step: 9\(global step: 9\)\tsample/sec: [0-9.]+\tD_loss: [0-9.]+\tG_loss: [0-9.]+", output)
    reader = tf.train.load_checkpoint(str(tmp_path / "log"))
    assert reader.get_tensor("global_step") == 20
    start = tf.train.load_checkpoint(str(tmp_path / "log" / "model.ckpt-0"))
    for name in ("generator/conv2d_transpose/kernel", "discriminator/conv2d/kernel"):
        assert not np.array_equal(reader.get_tensor(name), start.get_tensor(name))
    moving = "generator/batch_normalization/moving_variance"
    assert not np.array_equal(reader.get_tensor(moving), start.get_tensor(moving))
    images = [
        value.tag
        for path in (tmp_path / "log").glob("events*")
        for event in tf.train.summary_iterator(str(path))
        for value in event.summary.value
        if value.HasField("image")
    ]
    assert any(tag.startswith("G_z/image") for tag in images)


def test_output_fn_with_a_small_net(tmp_path):
    """§4.3 with a local file, own images and a dense layer in place of ResNet; the rest as it stands."""
    text = (SCRIPTS / "manual_4_3_output_fn.py").read_text()
    (tmp_path / "eval" / "class").mkdir(parents=True)
    for number in range(5):
        Image.new("RGB", (40, 30 + number), (number, 0, 0)).save(tmp_path / "eval" / "class" / f"{number}.jpg")
    text = text.replace("/export1/flowers/raw/split/eval", str(tmp_path / "eval"))
    text = re.sub(
        r"mox\.get_model_fn\(.*?\)\(images\)",
        "(slim.fully_connected(slim.flatten(images), 10), None)",
        text,
        flags=re.S,
    )
    text = text.replace("s3://dls-test/outputs.txt", "outputs.txt").replace("/tmp/checkpoint_path", "trained")
    predict = tmp_path / "predict.py"
    predict.write_text(text)
    train = tmp_path / "train.py"
    head = text[: text.index("def output_fn")]
    head = head.replace("output_info={'prediction': prediction}", "loss=tf.reduce_mean(logits)")
    train.write_text(
        f"{head}mox.run(input_fn=input_fn, model_fn=model_fn, optimizer_fn=mox.get_optimizer_fn('sgd', 0.01),\n"
        "        batch_size=32, run_mode=mox.ModeKeys.TRAIN, max_number_of_steps=1, log_dir='trained')\n"
    )
    output_of(train)
    assert "[320 examples]" in output_of(predict)
    lines = (tmp_path / "outputs.txt").read_text()
    assert lines.count("'prediction'") == 10


def test_placeholder(tmp_path):
    output = output_of(script(tmp_path, "manual_4_5_1_placeholder.py"))
    line = re.compile(r"step: \d+\(global step: \d+\)\tsample/sec: [0-9.]+\tloss: ([0-9.]+)")
    losses = [float(value) for value in line.findall(output)]
    assert len(losses) == 11
    assert losses[-1] < losses[0]


@pytest.mark.slow
def test_keras_and_its_json_with_the_first_ones_weights(tmp_path):
    log, model = tmp_path / "log", tmp_path / "keras_model.json"
    model_path = {"/tmp/delete_me/keras_model.json": str(model)}
    first = script(tmp_path, "manual_4_6_keras.py", **model_path, **{"log_dir=None": f"log_dir='{log}'", "=50": "=12"})
    assert "step: 10(global step: 10)" in output_of(first)
    assert model.stat().st_size > 1000
    shorter = {"=1000": "=11"}
    plain = script(tmp_path, "manual_4_6_keras_from_json.py", **model_path, **shorter)
    assert "step: 10(global step: 10)" in output_of(plain)
    warm = {"log_dir=None": f"log_dir=None, checkpoint_path='{log}'"}
    path = script(tmp_path, "manual_4_6_keras_from_json.py", **model_path, **warm, **{"=1000": "=14"})
    output = output_of(path)
    # Names do not depend on chance: every variable of the model is found, none is missing.
    assert re.search(r"(\d+) variables restored, 0 skipped by patterns, 0 missing there", output)
    assert "step: 13(global step: 13)" in output

"""A killed training resumes bit for bit; one that has ended starts over with its data."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest
import tensorflow.compat.v1 as tf

from helpers.estimator_models import assert_equal, input_fn, make, weights
from moxing.tensorflow.estimator.resume import drop_damaged, interrupted_at


@pytest.fixture
def process(request):
    """Starts the program; ends it with the test."""
    started = []

    def start(model_dir, steps, seconds):
        program = request.config.rootpath / "tests" / "helpers" / "estimator_program.py"
        words = [sys.executable, str(program), str(model_dir), str(steps), str(seconds)]
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.communicate()


def wait_for(path, one):
    deadline = time.monotonic() + 120
    while not path.exists():
        assert one.poll() is None and time.monotonic() < deadline, one.communicate()[0]
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_interrupted_training_resumes_bit_for_bit(tmp_path, process, number):
    model_dir = tmp_path / "model"
    one = process(model_dir, 100_000, 0.005)
    wait_for(model_dir / "model.ckpt-50.index", one)
    one.send_signal(number)
    output, _ = one.communicate(timeout=60)
    assert one.returncode == (-9 if number == signal.SIGKILL else 143), output
    reached = int(tf.train.load_variable(str(model_dir), "global_step"))
    assert reached >= 25
    if number == signal.SIGTERM:
        assert f"Stopped by signal 15: saved {model_dir}/model.ckpt-{reached}" in output
    assert interrupted_at(str(model_dir)).elements == reached
    last = reached + 35
    make(model_dir).train(input_fn, max_steps=last)
    make(tmp_path / "whole").train(input_fn, max_steps=last)
    assert_equal(weights(model_dir), weights(tmp_path / "whole"))


def test_a_training_that_ended_starts_over_with_its_data(tmp_path):
    """As in TensorFlow 1, where every call of train reads its data from the start."""
    make(tmp_path).train(input_fn, steps=30)
    assert interrupted_at(str(tmp_path)).elements == 0
    files = {path.name for path in tmp_path.iterdir()}
    assert "model.ckpt-25.moxing.json" in files and "model.ckpt-30.moxing.json" in files
    assert json.loads((tmp_path / "model.ckpt-25.moxing.json").read_text())["elements"] == 25


@pytest.mark.slow
def test_positions_are_removed_with_their_checkpoints(tmp_path):
    make(tmp_path, save_checkpoints_steps=5, keep_checkpoint_max=2).train(input_fn, max_steps=40)
    kept = {path.name.removesuffix(".index") for path in tmp_path.glob("*.index")}
    assert kept == {"model.ckpt-35", "model.ckpt-40"}
    assert {path.name.removesuffix(".moxing.json") for path in tmp_path.glob("*.moxing.json")} == kept


def test_a_damaged_checkpoint_is_passed_over(tmp_path, caplog):
    make(tmp_path).train(input_fn, max_steps=60)
    newest = tmp_path / "model.ckpt-60.data-00000-of-00001"
    newest.write_bytes(newest.read_bytes()[:100])
    drop_damaged(str(tmp_path))
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-50")
    assert "model.ckpt-60 is damaged" in caplog.text
    make(tmp_path).train(input_fn, steps=5)
    assert weights(tmp_path)["global_step"] == 55
    for path in tmp_path.glob("*.data*"):
        path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"All \d checkpoints in model_dir=.* are damaged"):
        make(tmp_path).train(input_fn, steps=5)


def test_a_checkpoint_without_a_position_is_one_of_tensorflow(tmp_path, caplog):
    make(tmp_path).train(input_fn, max_steps=30)
    for path in tmp_path.glob("*.moxing.json"):
        path.unlink()
    assert interrupted_at(str(tmp_path)).elements == 0
    assert not caplog.records or "missing" not in caplog.text

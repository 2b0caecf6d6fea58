"""Ctrl-C, SIGTERM and SIGHUP: the steps in hand are finished, everything is saved, the exit code tells."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf

from helpers.warm import PIPE, Program, WarmProcess

SCRIPT = """
import sys
import numpy as np
import moxing.tensorflow as mox
import tensorflow.compat.v1 as tf

DATA = np.random.RandomState(0).rand(400, 8).astype(np.float32)

def input_fn(mode):
    dataset = tf.data.Dataset.from_tensor_slices(DATA).shuffle(100).repeat()
    return tf.data.make_one_shot_iterator(dataset).get_next()

def model_fn(inputs, mode):
    weight = tf.get_variable("w", initializer=tf.ones([8, 1]))
    loss = tf.reduce_mean(tf.square(tf.matmul(inputs[0], weight) - 3.0))
    return mox.ModelSpec(loss=loss, log_info={"loss": loss})

tf.set_random_seed(1)
mox.run(input_fn=input_fn, model_fn=model_fn, optimizer_fn=mox.get_optimizer_fn("momentum", 0.01),
        run_mode=sys.argv[3], batch_size=16, log_dir=sys.argv[1], max_number_of_steps=int(sys.argv[2]),
        log_every_n_steps=1000)
"""


def start(log_dir, steps, mode="TRAIN"):
    return WarmProcess(Program("code", SCRIPT, (str(log_dir), str(steps), mode)), stderr=PIPE)


def wait_for_training(process):
    for line in process.stderr:
        if "step: 1000(" in line:
            return
    pytest.fail("the training never reached step 1000")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_saves_and_leaves_and_resumes_bit_for_bit(tmp_path: Path, number, code):
    with start(tmp_path / "broken", 10**9) as process:
        try:
            wait_for_training(process)
            process.send_signal(number)
            output = process.stderr.read()
            assert process.wait(timeout=30) == code
        finally:
            process.kill()
    newest = tf.train.latest_checkpoint(str(tmp_path / "broken"))
    assert f"Stopped by signal {int(number)}: saved {newest}. Run the same command again to resume from it." in output
    stopped_at = int(newest.rsplit("-", 1)[1])
    assert stopped_at > 1000
    if number != signal.SIGINT:
        return
    target = stopped_at + 500
    for directory in ("broken", "straight"):
        with start(tmp_path / directory, target) as process:
            assert "NaN" not in process.communicate(timeout=120)[1]
            assert process.returncode == 0
    left, right = (
        tf.train.NewCheckpointReader(str(tmp_path / directory / f"model.ckpt-{target}"))
        for directory in ("broken", "straight")
    )
    for name in left.get_variable_to_shape_map():
        assert left.get_tensor(name).tobytes() == right.get_tensor(name).tobytes(), name


def test_an_evaluation_has_nothing_to_save(tmp_path: Path):
    with start(tmp_path, 1) as process:
        process.communicate(timeout=120)
    with start(tmp_path, 10**9, "EVAL") as process:
        try:
            wait_for_training(process)
            process.terminate()
            output = process.stderr.read()
            assert process.wait(timeout=30) == 143
        finally:
            process.kill()
    assert "Stopped by signal 15: EVAL saves nothing. Run the same command again." in output

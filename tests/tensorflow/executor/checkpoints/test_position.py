"""The position in the data: resuming, the end of the data."""

from __future__ import annotations

import json
import random
import shutil

import tensorflow.compat.v1 as tf
from digits_model import assert_same_weights, train
from line_problem import run

import moxing.tensorflow as mox


def test_interrupted_at_random_steps_equals_never_interrupted(tmp_path):
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    train(straight, 1)
    shutil.copytree(straight, broken)
    train(straight, 80)
    stops = sorted(random.Random(1).sample(range(2, 80), 3))
    for stop in [*stops, 80]:
        train(broken, stop)
    assert_same_weights(straight / "model.ckpt-80", broken / "model.ckpt-80")


def test_shuffled_order_goes_on_where_it_stopped(tmp_path):
    """Without a loop over the data twice: every sample of the epoch is seen once, over two runs."""
    seen = []

    def numbers(mode):
        dataset = tf.data.Dataset.range(64).shuffle(64)
        return tf.data.make_one_shot_iterator(dataset).get_next()

    def model(inputs, mode):
        weight = tf.get_variable("w", shape=[])
        loss = weight * tf.reduce_mean(tf.cast(inputs[0], tf.float32))
        return mox.ModelSpec(loss=loss, output_info={"numbers": inputs[0]})

    for steps in (3, 10**6):
        mox.run(
            input_fn=numbers,
            model_fn=model,
            optimizer_fn=mox.get_optimizer_fn("sgd", 0.0),
            output_fn=lambda outputs: seen.extend(outputs[0]["numbers"]),
            output_every_n_steps=1,
            run_mode="TRAIN",
            batch_size=8,
            log_dir=str(tmp_path),
            max_number_of_steps=steps,
        )
    assert sorted(seen) == list(range(64))
    assert seen != sorted(seen)


def test_data_that_has_shrunk_is_said(tmp_path, caplog):
    def numbers(size):
        return lambda mode: tf.data.Dataset.range(size)

    run(log_dir=tmp_path, input_fn=numbers(100), max_number_of_steps=10)
    result = run(log_dir=tmp_path, input_fn=numbers(8), max_number_of_steps=20)
    assert (result.global_step, result.samples) == (10, 0)
    assert "continues after 20 samples of the data, and the data now ends before (8 samples)" in caplog.text
    assert run(log_dir=tmp_path, input_fn=numbers(8), max_number_of_steps=20).global_step == 14


def test_after_the_end_of_data_the_next_run_starts_over(tmp_path):
    def short(mode):
        return tf.data.make_one_shot_iterator(tf.data.Dataset.range(20)).get_next()

    def model(inputs, mode):
        weight = tf.get_variable("w", shape=[])
        return mox.ModelSpec(loss=weight * tf.reduce_mean(tf.cast(inputs[0], tf.float32)))

    def run():
        return mox.run(
            input_fn=short,
            model_fn=model,
            optimizer_fn=mox.get_optimizer_fn("sgd", 0.0),
            run_mode="TRAIN",
            batch_size=8,
            log_dir=str(tmp_path),
            max_number_of_steps=10**9,
        )

    first, second = run(), run()
    assert (first.global_step, first.samples) == (3, 20)
    assert (second.global_step, second.samples) == (6, 20)
    assert json.loads((tmp_path / "model.ckpt-6.moxing.json").read_text())["elements"] == 0

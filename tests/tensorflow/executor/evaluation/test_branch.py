"""The model in inter_mode beside the training: its data, its variables, what cannot be built."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from evaluation_runs import evaluated, log_hook, numbers, run, two_sets
from line_problem import line_model, number_input, sgd

import moxing.tensorflow as mox


def test_several_sets(tmp_path, caplog):
    """Each hook sees its own data; what they remember does not get mixed up, also over a restart."""

    def sevens(mode):
        return numbers(7)

    def hooks(batch, w):
        mean, arguments = tf.reduce_mean(batch), (4, 40)
        return [
            mox.LogEvaluationMetricHook({"mean": mean}, *arguments, prefix="[own]", input_fn=lambda mode: numbers(3)),
            mox.LogEvaluationMetricHook({"mean": mean}, *arguments, prefix="[run]"),
            mox.LogEvaluationMetricHook({"mean": mean}, *arguments, prefix="[seven]", input_fn=sevens),
            mox.EarlyStoppingHook({"mean": mean}, "mean", *arguments, prefix="[stop]", patience=2, input_fn=sevens),
        ]

    assert run(hooks, tmp_path, steps=20).global_step == 20
    assert run(hooks, tmp_path, steps=1000).global_step == 30
    for prefix, mean in {"[own]": "1.000", "[run]": "4.500", "[seven]": "3.000", "[stop]": "3.000"}.items():
        assert evaluated(caplog, prefix) == [(step, f"mean: {mean}") for step in (9, 19, 29)]


def test_several_sets_need_the_same_hooks():
    def hooks(batch, w):
        made.append(batch)
        hook = mox.LogEvaluationMetricHook({"w": w}, 4, 40, input_fn=two_sets)
        return [hook] * len(made)

    made = []
    with pytest.raises(ValueError, match="every call must return the same"):
        run(hooks)


def network(inputs, mode, hooks=True):
    training = mode == mox.ModeKeys.TRAIN
    x = tf.layers.dense(inputs[0][:, None] / 1000.0, 8, name="first")
    x = tf.layers.batch_normalization(x, training=training)
    x = tf.layers.dropout(x, 0.5, training=training)
    if training:
        x += tf.layers.dense(x, 8, name="only_in_training")
    loss = tf.reduce_mean(tf.square(tf.layers.dense(x, 1) - 1.0))
    updates = len(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    hook = mox.LogEvaluationMetricHook({"loss": loss, "updates": updates}, 4, 20, prefix="[V]")
    return mox.ModelSpec(loss=loss, log_info={"loss": loss}, hooks=[hook] if hooks else [])


def test_training_does_not_notice(tmp_path, caplog):
    """Weights and moving averages are those of a run without; what is evaluated is what EVAL says of the checkpoint."""
    caplog.set_level("INFO")

    def train(log_dir, hooks):
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            return mox.run(
                input_fn=two_sets,
                model_fn=lambda inputs, mode: network(inputs, mode, hooks),
                optimizer_fn=mox.get_optimizer_fn("sgd", learning_rate=0.1),
                run_mode="TRAIN",
                inter_mode="EVAL" if hooks else None,
                batch_size=4,
                max_number_of_steps=20,
                log_dir=str(tmp_path / log_dir),
            )

    alone, evaluating = train("alone", False), train("evaluating", True)
    readers = [tf.train.load_checkpoint(result.checkpoint_path) for result in (alone, evaluating)]
    names = readers[0].get_variable_to_shape_map()
    assert names == readers[1].get_variable_to_shape_map()
    assert any("moving_mean" in name for name in names)
    for name in names:
        np.testing.assert_array_equal(readers[0].get_tensor(name), readers[1].get_tensor(name))
    lines = evaluated(caplog, "[V]")
    assert [step for step, _ in lines] == [4, 9, 14, 19]
    result = mox.run(
        input_fn=two_sets,
        # The same model_fn: its hook has nothing to do here.
        model_fn=lambda inputs, mode: network(inputs, mode),
        run_mode="EVAL",
        batch_size=4,
        max_number_of_steps=100,
        checkpoint_path=str(tmp_path / "evaluating"),
    )
    assert lines[-1][1] == f"loss: {result.log_info['loss']:.3f} updates: 0.000"


def test_averages_of_the_weights_are_evaluated(caplog):
    """w is -1, -2 after the steps, and its average, with half of it kept, -0.5 and -1.25."""
    caplog.set_level("INFO")
    averaging = mox.get_optimizer_wrapper_fn("ema", sgd(1.0), decay=0.5)
    run(log_hook(period=1), optimizer_fn=averaging, steps=2)
    assert [text.split()[-1] for _, text in evaluated(caplog, "[V]")] == ["-0.500", "-1.250"]


def test_what_cannot_be_evaluated():
    def endless(mode, **kwargs):
        return numbers(10, repeat=True)

    def queue(mode, **kwargs):
        if mode == "TRAIN":
            return numbers(1000)
        return tf.train.input_producer(tf.range(10.0), shuffle=False).dequeue()

    with pytest.raises(ValueError, match="never ends: give samples_in_eval"):
        run(log_hook(), input_fn=endless)
    with pytest.raises(ValueError, match="in mode EVAL uses queues"):
        run(log_hook(3), input_fn=queue)
    with pytest.raises(ValueError, match="returned no data in inter_mode"):
        run(log_hook(), input_fn=lambda mode: numbers(1000 if mode == "TRAIN" else 0))
    with pytest.raises(ValueError, match="mox.run has no inter_mode"):
        run(log_hook(), inter_mode=None)

    def grown(inputs, mode, **kwargs):
        if mode == "EVAL":
            tf.get_variable("other", shape=[2])
        return line_model(inputs, mode)

    with pytest.raises(ValueError, match="created the variable other of shape .2,. for inter_eval, but no such"):
        mox.run(
            input_fn=number_input,
            model_fn=grown,
            optimizer_fn=sgd(),
            run_mode="TRAIN",
            inter_mode="EVAL",
            batch_size=2,
            max_number_of_steps=1,
        )


def test_what_was_probably_not_meant(caplog):
    run(log_hook(1000, period=5), steps=10)
    assert caplog.text.count("samples_in_eval is 1000, but the data of input_fn in inter_mode has only 10 samples") == 1

    def other(mode, **kwargs):
        return tf.data.Dataset.from_tensor_slices(tf.zeros([3, 2])).make_one_shot_iterator().get_next()

    def model_fn(inputs, mode, **kwargs):
        w = tf.reduce_sum(tf.get_variable("w", [inputs[0].shape.rank]))
        arguments = ({"w": w}, 8, 16)
        early = mox.EarlyStoppingHook(*arguments[:1], "w", *arguments[1:])
        hooks = [early if mode == mox.ModeKeys.TRAIN else mox.LogEvaluationMetricHook(*arguments, input_fn=other)]
        return mox.ModelSpec(loss=tf.square(w), log_info={"w": w}, hooks=hooks)

    settings = {"optimizer_fn": sgd(), "run_mode": "TRAIN", "inter_mode": "EVAL", "max_number_of_steps": 2}
    with pytest.raises(
        ValueError, match=r"LogEvaluationMetricHook\(input_fn=other\): the model cannot be built on its"
    ):
        mox.run(input_fn=two_sets, model_fn=model_fn, batch_size=4, **settings)
    assert "model_fn returned EarlyStoppingHook in mode TRAIN only" in caplog.text
    assert "LogEvaluationMetricHook(batch_size=8): a training step takes 4 samples" in caplog.text


def test_inter_mode_without_hooks(caplog):
    run(lambda batch, w: [], steps=2)
    assert "no hook that uses it" in caplog.text

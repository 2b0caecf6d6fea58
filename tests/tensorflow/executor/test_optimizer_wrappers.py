"""Optimizer wrappers in whole runs: what is left over at the end of the data, and averages in evaluation and export."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox

SAMPLES = np.arange(1.0, 8.0, dtype=np.float32)  # 7 of them


def input_fn(mode):
    return tf.data.Dataset.from_tensor_slices(SAMPLES).batch(1).make_one_shot_iterator().get_next()


def model_fn(inputs, mode):
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    (samples,) = inputs
    loss = tf.reduce_mean(w * samples)  # its gradient is the sample
    spec = mox.ExportSpec(inputs_dict={"x": samples}, outputs_dict={"w": w + 0 * tf.reduce_sum(samples)})
    return mox.ModelSpec(loss=loss, log_info={"w": w}, export_spec=spec)


def sgd():
    return tf.train.GradientDescentOptimizer(1.0)


def trained(log_dir, name: str = "w"):
    return tf.train.load_variable(str(log_dir), name)


def run(log_dir, optimizer_fn, **arguments):
    return mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        optimizer_fn=optimizer_fn,
        run_mode=arguments.pop("run_mode", mox.ModeKeys.TRAIN),
        log_dir=str(log_dir) if log_dir else None,
        max_number_of_steps=arguments.pop("max_number_of_steps", 1000),
        auto_batch=False,
        **arguments,
    )


@pytest.mark.parametrize("update", ["parameter_server", "replicated"])
@pytest.mark.parametrize("towers", [1, 2])
def test_what_is_left_over_is_applied_at_the_end_of_the_data(tmp_path, towers, update):
    mox.set_flag("num_gpus", towers)
    mox.set_flag("variable_update", update if towers > 1 else None)
    run(tmp_path, mox.get_optimizer_wrapper_fn("batch_gradients", sgd, num_batches=3))
    if towers == 1:  # (1 2 3) (4 5 6) (7)
        expected = -(2 + 5 + 7)
    else:  # a step is two samples: (1 2) (3 4) (5 6), and at the end (7) of one tower
        expected = -(3.5 + 7)
    assert trained(tmp_path) == pytest.approx(expected)
    assert trained(tmp_path, "moxing/optimizer/batch_gradients/count") == 0


def test_a_training_that_is_broken_off_keeps_what_it_gathered(tmp_path):
    wrapper = mox.get_optimizer_wrapper_fn("batch_gradients", sgd, num_batches=3)
    run(tmp_path, wrapper, max_number_of_steps=5)
    assert trained(tmp_path) == -2  # 4 and 5 wait
    assert trained(tmp_path, "moxing/optimizer/batch_gradients/count") == 2
    run(tmp_path, wrapper)
    assert trained(tmp_path) == pytest.approx(-(2 + 5 + 7))


def test_evaluation_and_export_take_the_averages(tmp_path):
    wrapper = mox.get_optimizer_wrapper_fn("ema", sgd, decay=0.5)
    result = run(tmp_path, wrapper, export_model=mox.ExportKeys.TF_SERVING)
    weights, average = 0.0, 0.0
    for sample in SAMPLES:
        weights -= sample
        average = 0.5 * average + 0.5 * weights
    assert trained(tmp_path) == weights
    assert trained(tmp_path, "w/ExponentialMovingAverage") == pytest.approx(average)
    evaluated = run(None, None, run_mode=mox.ModeKeys.EVAL, checkpoint_path=str(tmp_path))
    assert evaluated.log_info["w"] == pytest.approx(average)
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.load(session, ["serve"], result.export_path)
        signature = meta.signature_def["predict_object"]
        served = session.run(signature.outputs["w"].name, {signature.inputs["x"].name: [1.0]})
    assert served == pytest.approx(average)
    # Training goes on with the weights themselves.
    run(tmp_path, wrapper, max_number_of_steps=8)
    assert trained(tmp_path) == weights - 1


def test_averages_of_the_script_itself_stay_its_own(tmp_path):
    def with_average(inputs, mode):
        spec = model_fn(inputs, mode)
        if mode == mox.ModeKeys.TRAIN:
            average = tf.train.ExponentialMovingAverage(0.5)
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, average.apply(tf.trainable_variables()))
        return spec

    for mode in (mox.ModeKeys.TRAIN, mox.ModeKeys.EVAL):
        result = mox.run(
            input_fn=input_fn,
            model_fn=with_average,
            optimizer_fn=sgd,
            run_mode=mode,
            log_dir=str(tmp_path) if mode == mox.ModeKeys.TRAIN else None,
            checkpoint_path=str(tmp_path) if mode != mox.ModeKeys.TRAIN else None,
            max_number_of_steps=1000,
            auto_batch=False,
        )
    assert "w/ExponentialMovingAverage" in dict(tf.train.list_variables(str(tmp_path)))
    assert result.log_info["w"] == trained(tmp_path)

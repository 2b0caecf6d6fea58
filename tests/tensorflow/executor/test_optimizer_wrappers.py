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


# --- batches of different sizes ---------------------------------------------------------------------------------------

POINTS = np.random.RandomState(5).randn(11, 3)


def mean_model():
    """A model whose gradient is its weight minus the mean of the batch, in 64 bits."""

    def model(inputs, mode):
        w = tf.get_variable("w", [3], tf.float64, tf.ones_initializer())
        loss = tf.reduce_mean(tf.reduce_sum(tf.square(w - inputs[0]), 1)) / 2
        return mox.ModelSpec(loss=loss, log_info={"loss": loss})

    return model


def momentum_over(groups):
    """NumPy: momentum, a step with the whole of every group of points."""
    w, speed = np.ones(3), np.zeros(3)
    for group in groups:
        speed = 0.5 * speed + (w - np.concatenate(group).mean(0))
        w = w - 0.25 * speed
    return w


def weighted_run(log_dir, dataset, count, steps=1000, **arguments):
    fn = mox.get_optimizer_wrapper_fn(
        "batch_gradients", mox.get_optimizer_fn("momentum", 0.25, momentum=0.5), num_batches=count
    )
    return mox.run(
        input_fn=lambda mode: dataset().make_one_shot_iterator().get_next(),
        model_fn=mean_model(),
        optimizer_fn=fn,
        run_mode=mox.ModeKeys.TRAIN,
        log_dir=str(log_dir),
        max_number_of_steps=steps,
        **arguments,
    )


def points():
    return tf.data.Dataset.from_tensor_slices(POINTS)


def cut(array, size):
    return [array[begin : begin + size] for begin in range(0, len(array), size)]


def grouped(batches, count):
    return [batches[begin : begin + count] for begin in range(0, len(batches), count)]


LAYOUTS = [
    (1, None, 1),
    (1, None, "dynamic"),
    (2, "parameter_server", 1),
    (2, "replicated", 1),
    (2, "replicated", "dynamic"),
]


@pytest.mark.parametrize(("towers", "update", "scale"), LAYOUTS)
@pytest.mark.parametrize("count", [2, 3])
def test_a_short_last_batch_counts_by_its_samples(tmp_path, towers, update, scale, count):
    """11 samples, three times: batches of 4, or towers with 2 each, and one sample at the end."""
    for name, value in (("num_gpus", towers), ("variable_update", update), ("loss_scale", scale)):
        mox.set_flag(name, value)
    weighted_run(tmp_path, lambda: points().repeat(3), count, batch_size=4 // towers)
    expected = momentum_over(grouped(cut(np.tile(POINTS, (3, 1)), 4), count))
    np.testing.assert_allclose(trained(tmp_path), expected, rtol=1e-6)
    assert trained(tmp_path, "moxing/optimizer/batch_gradients/missing") == 0


@pytest.mark.parametrize("batch_size", [None, 4])
@pytest.mark.parametrize("steps", [12, 1000])
def test_batches_of_the_script_count_by_their_samples(tmp_path, batch_size, steps):
    """4, 4, 3, 4, 4, 3, ..., without end in one case: the short ones are everywhere."""
    epochs = 5 if steps > 12 else -1
    weighted_run(
        tmp_path, lambda: points().batch(4).repeat(epochs), 4, steps=steps, batch_size=batch_size, auto_batch=False
    )
    expected = momentum_over(grouped((cut(POINTS, 4) * 5)[: min(steps, 15)], 4))
    np.testing.assert_allclose(trained(tmp_path), expected, rtol=1e-6)


def test_a_run_that_is_broken_off_behind_a_short_batch_goes_on(tmp_path):
    dataset = lambda: points().batch(4).repeat()  # noqa: E731
    weighted_run(tmp_path, dataset, 4, steps=7, batch_size=4, auto_batch=False)
    assert trained(tmp_path, "moxing/optimizer/batch_gradients/count") == 3
    assert trained(tmp_path, "moxing/optimizer/batch_gradients/missing") == pytest.approx(0.25)
    weighted_run(tmp_path, dataset, 4, steps=8, batch_size=4, auto_batch=False)
    np.testing.assert_allclose(trained(tmp_path), momentum_over(grouped((cut(POINTS, 4) * 3)[:8], 4)), rtol=1e-6)


def test_rows_of_sparse_gradients_count_by_samples(tmp_path):
    numbers = np.array([0, 1, 2, 1, 1, 3])

    def model(inputs, mode):
        table = tf.get_variable("w", [5], tf.float64, tf.zeros_initializer())
        loss = tf.reduce_mean(tf.gather(table, inputs[0]))
        return mox.ModelSpec(loss=loss, log_info={"loss": loss})

    mox.run(
        input_fn=lambda mode: tf.data.Dataset.from_tensor_slices(numbers).make_one_shot_iterator().get_next(),
        model_fn=model,
        optimizer_fn=mox.get_optimizer_wrapper_fn("batch_gradients", sgd, num_batches=2),
        run_mode=mox.ModeKeys.TRAIN,
        log_dir=str(tmp_path),
        batch_size=4,
        max_number_of_steps=10,
    )
    np.testing.assert_allclose(trained(tmp_path), -np.bincount(numbers, minlength=5) / 6, rtol=1e-6)


@pytest.mark.parametrize(("endless", "adds"), [(True, "AssignAddVariableOp"), (False, "ResourceApplyGradientDescent")])
def test_batches_of_one_size_are_only_added_up(tmp_path, endless, adds):
    """Nothing is computed for a weight that is always the same."""
    found = []

    class Look(tf.train.SessionRunHook):
        def begin(self):
            found.extend(tf.get_default_graph().get_operations())

    def model(inputs, mode):
        spec = mean_model()(inputs, mode)
        return mox.ModelSpec(loss=spec.loss, log_info=spec.log_info, hooks=[Look()])

    mox.run(
        input_fn=lambda mode: points().repeat(-1 if endless else 2).make_one_shot_iterator().get_next(),
        model_fn=model,
        optimizer_fn=mox.get_optimizer_wrapper_fn("batch_gradients", sgd, num_batches=2),
        run_mode=mox.ModeKeys.TRAIN,
        batch_size=4,
        max_number_of_steps=2,
    )
    (total,) = [op for op in found if op.type == "VarHandleOp" and op.name == "w/BatchGradients"]
    users = [
        op.type
        for op in found
        if total.outputs[0] in list(op.inputs) and op.type.endswith(("AddVariableOp", "Descent"))
    ]
    assert users == [adds]
    (missing,) = [op for op in found if op.type == "VarHandleOp" and op.name.endswith("batch_gradients/missing")]
    assert any(op.type == "AssignAddVariableOp" and op.inputs[0] is missing.outputs[0] for op in found) is not endless


def test_accumulations_inside_of_accumulations(tmp_path):
    """Batches of 4, 4, 3, 4 ...: two of them make one, and two of those an update."""
    inner = mox.get_optimizer_wrapper_fn(
        "batch_gradients", mox.get_optimizer_fn("momentum", 0.25, momentum=0.5), num_batches=2
    )
    mox.run(
        input_fn=lambda mode: points().batch(4).repeat(4).make_one_shot_iterator().get_next(),
        model_fn=mean_model(),
        optimizer_fn=mox.get_optimizer_wrapper_fn("batch_gradients", inner, num_batches=2),
        run_mode=mox.ModeKeys.TRAIN,
        log_dir=str(tmp_path),
        max_number_of_steps=1000,
        auto_batch=False,
    )
    np.testing.assert_allclose(trained(tmp_path), momentum_over(grouped(cut(POINTS, 4) * 4, 4)), rtol=1e-6)


# --- easgd in one process ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("towers", "update"), [(1, None), (2, "parameter_server"), (2, "replicated")])
def test_one_process_with_easgd_trains_plainly(tmp_path, towers, update, caplog):
    mox.set_flag("num_gpus", towers)
    mox.set_flag("variable_update", update)
    fn = mox.get_optimizer_wrapper_fn("easgd", mox.get_optimizer_fn("momentum", 0.25, momentum=0.5), period=2)

    def train(epochs):
        mox.run(
            input_fn=lambda mode: points().repeat(epochs).make_one_shot_iterator().get_next(),
            model_fn=mean_model(),
            optimizer_fn=fn,
            run_mode=mox.ModeKeys.TRAIN,
            log_dir=str(tmp_path),
            batch_size=4 // towers,
            max_number_of_steps=1000,
        )

    caplog.set_level("WARNING", logger="tensorflow")
    train(2)
    assert "without workers to exchange with" in caplog.text
    expected = momentum_over(grouped(cut(np.tile(POINTS, (2, 1)), 4), 1))
    np.testing.assert_allclose(trained(tmp_path), expected, rtol=1e-6)
    assert dict(tf.train.list_variables(str(tmp_path))) == {"w": [3], "global_step": []}
    train(1)
    assert trained(tmp_path, "global_step") == 9


# --- ends, averages ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_training_that_is_broken_off_keeps_what_it_gathered(tmp_path):
    wrapper = mox.get_optimizer_wrapper_fn("batch_gradients", sgd, num_batches=3)
    run(tmp_path, wrapper, max_number_of_steps=5)
    assert trained(tmp_path) == -2  # 4 and 5 wait
    assert trained(tmp_path, "moxing/optimizer/batch_gradients/count") == 2
    run(tmp_path, wrapper)
    assert trained(tmp_path) == pytest.approx(-(2 + 5 + 7))


@pytest.mark.slow
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

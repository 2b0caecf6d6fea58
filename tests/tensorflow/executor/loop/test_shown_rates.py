"""The learning rate in use: in the summaries at its steps, in the progress bar, for every strategy and optimizer."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from events import scalars
from line_problem import line_model, run, sgd, step_rate

import moxing.tensorflow as mox
from moxing.tensorflow.executor.loop.shown_rates import ShownRates
from moxing.tensorflow.optimizer.rate_factor import learning_rates
from moxing.tf1.graph.surgery import CONDITIONALS, ancestors, only_reads_variables, run_after


def late(kind):
    """The rate as a function, which TensorFlow calls when it applies gradients."""
    return lambda: kind(step_rate)


OPTIMIZERS = {
    "tensor": lambda: tf.train.GradientDescentOptimizer(step_rate()),
    "function": late(tf.train.GradientDescentOptimizer),
    "adam": late(tf.train.AdamOptimizer),
    "adamw": lambda: mox.get_optimizer_fn("adamw", learning_rate=step_rate())(),
    "wrapped": mox.get_optimizer_wrapper_fn("ema", late(tf.train.GradientDescentOptimizer)),
    # The updates stand in a branch: only what comes before it shows the rate of this step.
    "in a branch": mox.get_optimizer_wrapper_fn(
        "batch_gradients", late(tf.train.GradientDescentOptimizer), num_batches=2
    ),
}


@pytest.mark.parametrize("single", [False, True], ids=["loop", "single steps"])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_the_rate_of_every_step(kind, single, tmp_path):
    class Looks(tf.train.SessionRunHook):
        def after_run(self, context, values):
            pass

    def model_fn(inputs, mode, **kwargs):
        spec = line_model(inputs, mode)
        spec.hooks = [Looks()] if single else []
        return spec

    run(
        model_fn=model_fn, optimizer_fn=OPTIMIZERS[kind], log_dir=str(tmp_path), save_summary_steps=3,
        max_number_of_steps=13,
    )  # fmt: skip
    assert scalars(tmp_path)["learning_rate"] == {step: step + 1.0 for step in (0, 3, 6, 9, 12)}


@pytest.mark.parametrize("scale", ["1", "dynamic"])
@pytest.mark.parametrize("update", ["parameter_server", "replicated"])
def test_two_towers(update, scale, tmp_path):
    mox.set_flag("num_gpus", 2)
    mox.set_flag("variable_update", update)
    mox.set_flag("loss_scale", scale if scale == "dynamic" else float(scale))
    run(optimizer_fn=late(tf.train.GradientDescentOptimizer), log_dir=str(tmp_path), save_summary_steps=2)
    found = scalars(tmp_path)
    assert found["learning_rate"] == {0: 1.0, 2: 3.0}
    assert "learning_rate_1" not in found


def two_losses(inputs, mode, **kwargs):
    with tf.variable_scope("a"):
        a = tf.identity(tf.get_variable("w", shape=[], initializer=tf.zeros_initializer()))
    with tf.variable_scope("b"):
        b = tf.identity(tf.get_variable("w", shape=[], initializer=tf.zeros_initializer()))
    return mox.ModelSpec(loss=[a, b], var_scopes=[["a"], ["b"]], log_info={"a": a})


@pytest.mark.parametrize(
    ("rates", "expected"),
    [((0.5, 0.5), {"learning_rate": 0.5}), ((0.5, 0.25), {"learning_rate": 0.5, "learning_rate_1": 0.25})],
)
def test_several_losses(rates, expected, tmp_path):
    run(model_fn=two_losses, optimizer_fn=[sgd(rate) for rate in rates], log_dir=str(tmp_path))
    found = scalars(tmp_path)
    assert {tag: found[tag][0] for tag in found if tag.startswith("learning_rate")} == expected


def test_the_users_own_tag_stays(tmp_path):
    def by_summary(inputs, mode, **kwargs):
        tf.summary.scalar("learning_rate", tf.constant(7.0))
        return line_model(inputs, mode)

    def by_log_info(inputs, mode, **kwargs):
        w = tf.identity(tf.get_variable("w", shape=[], initializer=tf.zeros_initializer()))
        return mox.ModelSpec(loss=w, log_info={"learning_rate": tf.constant(7.0)})

    for place, model_fn in enumerate((by_summary, by_log_info)):
        run(model_fn=model_fn, log_dir=str(tmp_path / str(place)))
        assert scalars(tmp_path / str(place))["learning_rate"] == {0: 7.0}


def test_an_optimizer_of_the_users_own_has_no_rate(tmp_path):
    class Own(tf.train.GradientDescentOptimizer):
        def __init__(self):
            super().__init__(1.0)
            self._learning_rate = None
            self._rate = "fast"

        def _prepare(self):
            self._learning_rate_tensor = tf.constant(1.0)

    run(optimizer_fn=Own, log_dir=str(tmp_path))
    assert set(scalars(tmp_path)) == {"w"}


def test_the_factor_of_a_plateau_is_in_the_rate(tmp_path):
    def model_fn(inputs, mode, **kwargs):
        w = tf.identity(tf.get_variable("w", shape=[], initializer=tf.zeros_initializer()))
        hook = mox.PlateauLREarlyStoppingHook({"x": 1.0 + 0.0 * w}, "x", 2, 4, 2, patience=1, decay_patience=3)
        return mox.ModelSpec(loss=w, log_info={"w": w}, hooks=[hook])

    run(
        model_fn=model_fn, log_dir=str(tmp_path), inter_mode="EVAL", max_number_of_steps=20, save_summary_steps=1,
        optimizer_fn=sgd(0.5),
    )  # fmt: skip
    found = scalars(tmp_path)["learning_rate"]
    # Evaluations after 2, 4, 6 steps: the second and the third without a gain.
    assert [round(found[step], 6) for step in range(6)] == [0.5, 0.5, 0.5, 0.5, 0.05, 0.05]


def test_equal_rates_and_what_can_be_fetched():
    with tf.Graph().as_default():
        shared = tf.get_variable("rate", initializer=0.5, use_resource=True)
        tensor = shared * 2.0
        made = [tf.train.AdamOptimizer(tensor), tf.train.MomentumOptimizer(tensor, 0.9)]
        assert list(learning_rates(made)) == ["learning_rate"]
        assert only_reads_variables(tensor)
        assert only_reads_variables(tf.train.piecewise_constant(tf.cast(tensor, tf.int32), [5], [0.1, 0.2]))
        fed = tf.placeholder_with_default(1.0, [])
        queue = tf.FIFOQueue(1, [tf.float32], [[]]).dequeue()
        counted = shared.assign_add(1.0)
        assert not any(only_reads_variables(bad * 2.0) for bad in (fed, queue, counted, tf.random_uniform([])))
        assert not only_reads_variables(tf.cond(tensor > 1, lambda: shared.assign_add(1.0), lambda: tensor))


def test_a_branch_waits_for_what_is_shown():
    """A read that no operation orders would race with the updates in a branch."""
    with tf.Graph().as_default():
        step = tf.get_variable("step", initializer=1.0, use_resource=True)
        rate = step * 2.0
        update = tf.cond(rate > 5.0, lambda: step.assign_add(1.0), lambda: step.read_value())
        other = tf.cond(step > 5.0, lambda: step + 1.0, lambda: step + 2.0)
        shown = step.read_value() + other
        run_after([update], [shown.op], CONDITIONALS)
        assert shown.op in branch_of(update).control_inputs
        assert shown.op not in branch_of(other).control_inputs  # it needs that one itself


def branch_of(tensor):
    return next(op for op in ancestors([tensor]).values() if op.type in CONDITIONALS)


class Terminal:
    """A session that counts what is fetched."""

    def __init__(self):
        self.fetched = 0

    def run(self, rates):
        self.fetched += 1
        return dict.fromkeys(rates, 0.125)


def test_the_display_fetches_now_and_then():
    session = Terminal()
    with tf.Graph().as_default():
        shown = ShownRates({"learning_rate": tf.constant(1.0), "learning_rate_1": tf.random_uniform([])}, session)
        assert {shown.text() for _ in range(100)} == {"learning_rate 0.125"}
        assert session.fetched == 1
        shown._fetched -= 1.0
        shown.text()
        assert session.fetched == 2
        assert ShownRates({"learning_rate": tf.random_uniform([])}, session).text() == ""

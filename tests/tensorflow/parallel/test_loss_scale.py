"""Loss scaling: applied are the gradients of the loss itself, and an overflow changes nothing but the scale."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.parallel import Tower, TrainSetup, loss_scale
from moxing.tensorflow.parallel.local import Local
from moxing.tf1.graph.run_graph import run_graph

VALUE, GOOD = "moxing/loss_scale/value", "moxing/loss_scale/good_steps"

OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.9, centered=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.1),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1),
}


# --- one step by itself -----------------------------------------------------------------------------------------------


class Training:
    """A session and its training operation; the gradients are those of the losses times what is fed for them."""

    def __init__(self, session, train_op, factors):
        self.session, self.train_op, self.factors = session, train_op, factors

    def step(self, *factors):
        self.session.run(self.train_op, dict(zip(self.factors, factors, strict=False)))

    def variables(self):
        return {variable.op.name: self.session.run(variable) for variable in tf.global_variables()}

    def put(self, name, value):
        (variable,) = [variable for variable in tf.global_variables() if variable.op.name == name]
        self.session.run(variable.initializer, {variable.initializer.inputs[1]: value})


@contextmanager
def training(build, *optimizer_fns, scopes=None):
    """`build()` returns a loss, or a list of them, one for every optimizer."""
    with run_graph(tf.Graph()):
        global_step = tf.train.get_or_create_global_step()
        built = build()
        losses = built if isinstance(built, list) else [built]
        factors = [tf.placeholder_with_default(tf.constant(1.0, loss.dtype), []) for loss in losses]
        scaled = [loss * factor for loss, factor in zip(losses, factors, strict=True)]
        tower = Tower(scaled, scopes or [None] * len(losses))
        setup = TrainSetup([tower], optimizer_fns or [OPTIMIZERS["sgd"]], [], global_step)
        train_op = Local(["/cpu:0"]).train_op(setup).op
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            yield Training(session, train_op, factors)


def squares():
    w = tf.get_variable("w", initializer=tf.range(1.0, 4.0))
    return tf.reduce_sum(tf.square(w))


def embedding():
    """A row that is looked up twice, one once, two never; and a dense variable."""
    table = tf.get_variable("table", initializer=tf.reshape(tf.range(8.0), [4, 2]))
    rows = tf.nn.embedding_lookup(table, tf.constant([1, 3, 1]))
    return tf.reduce_sum(tf.square(rows)) + squares()


def assert_equal(one, other, ignoring=()):
    assert set(one) == set(other)
    for name in set(one) - set(ignoring):
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def changed(before, after):
    return {name for name in before if not np.array_equal(before[name], after[name])}


def after_steps(build, optimizer_fn, steps, scale):
    mox.set_flag("loss_scale", scale)
    with training(build, optimizer_fn) as run:
        for _ in range(steps):
            run.step()
        return {name: value for name, value in run.variables().items() if not name.startswith("moxing/")}


@pytest.mark.parametrize("build", [squares, embedding])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_power_of_two_changes_no_bit(optimizer, build):
    """Adadelta, Adagrad, ... included: what they are given are the gradients of the loss itself."""
    plain = after_steps(build, OPTIMIZERS[optimizer], 4, 1)
    assert_equal(plain, after_steps(build, OPTIMIZERS[optimizer], 4, 1024))
    assert_equal(plain, after_steps(build, OPTIMIZERS[optimizer], 4, "dynamic"))


@pytest.mark.parametrize("scale", [1e-3, 3, 1000, 1e8])
def test_other_scales_differ_by_rounding(scale):
    plain, scaled = (after_steps(embedding, OPTIMIZERS["momentum"], 5, value) for value in (1, scale))
    for name, value in plain.items():
        np.testing.assert_allclose(value, scaled[name], rtol=2e-6, err_msg=name)


@pytest.mark.parametrize("scale", [1024, 3000, 1e5, 1e7, "dynamic"])
def test_gradients_of_half_precision_variables_are_divided_by_the_scale_itself(scale):
    """Half precision has 1e-5 for 1 / 1e5 only roughly, and for 1 / 1e7 a number that is a fifth too large."""

    def build():
        w = tf.get_variable("w", dtype=tf.float16, initializer=tf.constant([0.0, 0.0], tf.float16))
        # The gradients are small enough to hold the scale, and large enough to be seen in the variable after it.
        return tf.reduce_sum(tf.cast(w, tf.float32) * [2e-4, -1e-3])

    mox.set_flag("loss_scale", scale)
    with training(build, lambda: tf.train.GradientDescentOptimizer(1.0)) as run:
        run.step()
        np.testing.assert_allclose(run.variables()["w"], [-2e-4, 1e-3], rtol=2e-3)


def test_what_half_precision_rounds_to_zero_is_kept():
    def build():
        w = tf.get_variable("w", initializer=0.0)
        return tf.cast(tf.cast(w, tf.float16) * 1e-4, tf.float32) * 1e-5  # a gradient of 1e-9

    moved = {}
    for scale in (1, 2**20, "dynamic"):
        mox.set_flag("loss_scale", scale)
        with training(build, lambda: tf.train.GradientDescentOptimizer(1.0)) as run:
            run.step()
            moved[scale] = run.variables()["w"]
    assert moved[1] == 0
    np.testing.assert_allclose([moved[2**20], moved["dynamic"]], -1e-9, rtol=0.01)


@pytest.mark.parametrize("scale", [4096.0, "dynamic"])
def test_a_half_precision_loss_too_large_for_its_scale(scale):
    """The loss of 100 times the scale is more than half precision can hold; its gradient is not."""

    def build():
        w = tf.get_variable("w", dtype=tf.float16, initializer=tf.constant(100.0, tf.float16))
        return tf.identity(w)

    mox.set_flag("loss_scale", scale)
    with training(build, lambda: tf.train.GradientDescentOptimizer(1.0)) as run:
        run.step()
        assert run.variables()["w"] == 99


@pytest.mark.parametrize("kind", ["norm", "global_norm", "value"])
@pytest.mark.parametrize("scale", [1024, "dynamic"])
def test_clipping_sees_the_gradients_of_the_loss_itself(kind, scale):
    mox.set_flag("gradient_clip_type", kind)
    for bound in (0.5, 1000.0):  # clips, does not clip
        mox.set_flag("gradient_clip", bound)
        assert_equal(
            after_steps(embedding, OPTIMIZERS["sgd"], 2, 1), after_steps(embedding, OPTIMIZERS["sgd"], 2, scale)
        )
    mox.set_flag("gradient_clip", 0.5)
    with training(squares, lambda: tf.train.GradientDescentOptimizer(1.0)) as run:
        before = run.variables()["w"]
        run.step()
        moved = before - run.variables()["w"]
    expected = [0.5] * 3 if kind == "value" else 0.5 * before / np.linalg.norm(before)
    np.testing.assert_allclose(moved, expected, rtol=1e-5)


# --- the dynamic scale ------------------------------------------------------------------------------------------------


@pytest.fixture
def dynamic():
    mox.set_flag("loss_scale", "dynamic")


@pytest.mark.usefixtures("dynamic")
@pytest.mark.parametrize("build", [squares, embedding])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_overflow_changes_no_variable_and_no_slot(optimizer, build):
    """1e36 overflows only by the scale of 2^15."""
    with training(build, OPTIMIZERS[optimizer]) as run:
        run.step()
        before = run.variables()
        assert before[VALUE] == 2**15
        assert before[GOOD] == 1
        for lost, bad in enumerate([np.inf, -np.inf, np.nan, 1e36], 1):
            run.step(bad)
            after = run.variables()
            assert changed(before, after) == {"global_step", VALUE, GOOD}, bad
            assert after["global_step"] == 1 + lost
            assert after[VALUE] == 2 ** (15 - lost)
            assert after[GOOD] == 0
        run.step()
        # As if the bad steps had never been.
        went_on = run.variables()
        assert {"w", "global_step"} < changed(after, went_on)
    with training(build, OPTIMIZERS[optimizer]) as run:
        run.step()
        run.step()
        assert_equal(run.variables(), went_on, ignoring=["global_step", VALUE, GOOD])


@pytest.mark.usefixtures("dynamic")
@pytest.mark.parametrize("where", ["table", "w"])
def test_an_overflow_in_one_gradient_of_two(where):
    """Of a dense variable, or of the rows of an embedding."""

    def build():
        large = {"table": 1e36 if where == "table" else 1.0, "w": 1e36 if where == "w" else 1.0}
        table = tf.get_variable("table", initializer=tf.ones([4, 2]))
        w = tf.get_variable("w", initializer=1.0)
        return tf.reduce_sum(tf.gather(table, [0, 2])) * large["table"] + w * large["w"]

    with training(build, OPTIMIZERS["adam"]) as run:
        before = run.variables()
        run.step()
        assert changed(before, run.variables()) == {"global_step", VALUE}


@pytest.mark.usefixtures("dynamic")
@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize("kind", ["norm", "global_norm", "value"])
def test_clipping_does_not_hide_an_overflow(kind, bad):
    """Clipping an infinite gradient by value makes an ordinary number of it."""
    mox.set_flag("gradient_clip_type", kind)
    mox.set_flag("gradient_clip", 1.0)
    with training(squares, OPTIMIZERS["momentum"]) as run:
        before = run.variables()
        run.step(bad)
        assert changed(before, run.variables()) == {"global_step", VALUE}


@pytest.mark.usefixtures("dynamic")
@pytest.mark.parametrize("bad", [(1.0, np.inf), (np.nan, 1.0), (np.inf, np.nan)])
def test_an_overflow_of_one_loss_skips_all(bad):
    def build():
        with tf.variable_scope("one"):
            first = squares()
        with tf.variable_scope("two"):
            return [first, squares()]

    with training(build, OPTIMIZERS["adam"], OPTIMIZERS["momentum"], scopes=[["one"], ["two"]]) as run:
        before = run.variables()
        run.step(*bad)
        skipped = run.variables()
        assert changed(before, skipped) == {"global_step", VALUE}
        assert skipped["global_step"] == 1
        run.step(1.0, 1.0)
        after = run.variables()
        assert {"one/w", "two/w", "two/w/Momentum", "one/w/Adam"} < changed(skipped, after)
        assert after["global_step"] == 2


@pytest.mark.usefixtures("dynamic")
def test_it_doubles_after_so_many_good_steps_in_a_row(monkeypatch):
    monkeypatch.setattr(loss_scale, "_GOOD_STEPS_TO_DOUBLE", 3)
    with training(squares) as run:
        seen = []
        for factor in (1, 1, np.inf, 1, 1, 1, 1, 1, 1, np.inf, 1):
            run.step(factor)
            values = run.variables()
            seen.append((int(np.log2(values[VALUE])), int(values[GOOD])))
    assert seen == [(15, 1), (15, 2), (14, 0), (14, 1), (14, 2), (15, 0), (15, 1), (15, 2), (16, 0), (15, 0), (15, 1)]


@pytest.mark.usefixtures("dynamic")
def test_floor_and_cap(monkeypatch):
    monkeypatch.setattr(loss_scale, "_GOOD_STEPS_TO_DOUBLE", 1)
    with training(squares) as run:
        run.put(VALUE, 2.0)
        for expected in (1, 1, 1):
            run.step(np.inf)
            assert run.variables()[VALUE] == expected
        run.put(VALUE, 2.0**22)
        for expected in (2**23, 2**24, 2**24):
            run.step()
            assert run.variables()[VALUE] == expected


@pytest.mark.usefixtures("dynamic")
def test_the_scale_stands_apart_from_the_model():
    with training(squares) as run:
        del run
        assert {VALUE, GOOD} <= {variable.op.name for variable in tf.global_variables()}
        assert [variable.op.name for variable in tf.trainable_variables()] == ["w"]


@pytest.mark.usefixtures("dynamic")
def test_an_optimizer_around_another():
    """It makes variables of its own when it applies gradients."""

    def averaging():
        average = tf.train.ExponentialMovingAverage(0.5)
        inner = tf.train.MomentumOptimizer(0.1, 0.9)

        class Averaging:
            def compute_gradients(self, *args, **kwargs):
                return inner.compute_gradients(*args, **kwargs)

            def apply_gradients(self, pairs, global_step=None):
                pairs = list(pairs)
                applied = inner.apply_gradients(pairs, global_step=global_step)
                with tf.control_dependencies([applied]):
                    return average.apply([variable for _, variable in pairs])

        return Averaging()

    with training(squares, averaging) as run:
        before = run.variables()
        assert "w/ExponentialMovingAverage" in before
        run.step(np.inf)
        assert changed(before, run.variables()) == {"global_step", VALUE}
        run.step()
        assert {"w", "w/Momentum", "w/ExponentialMovingAverage", "global_step"} < changed(before, run.variables())


@pytest.mark.parametrize("value", [0, -2.0, "inf", "nan", None])
def test_values_that_are_no_scale(value):
    mox.set_flag("loss_scale", value)
    with (
        tf.Graph().as_default(),
        pytest.raises(ValueError, match=r"--loss_scale=.*: expected a number above 0, or dynamic"),
    ):
        loss_scale.make_loss_scale()

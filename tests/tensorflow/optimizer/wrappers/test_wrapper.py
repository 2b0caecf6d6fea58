"""What all wrappers share: stacks, restarts, how gradients are computed."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from updates import (
    STEPS,
    Trained,
    close,
    computed,
    inner,
    lars,
    means,
    momentum,
    wrapped,
)

import moxing.tensorflow as mox
from moxing.tensorflow.optimizer.factory import get_optimizer_fn
from moxing.tensorflow.optimizer.wrappers.factory import (
    WRAPPERS,
)
from moxing.tensorflow.optimizer.wrappers.wrapper import flush_op


def test_lars_batch_gradients_and_momentum():
    """The stack of the manual, with optimizers and with functions in between."""
    expected = computed(lars(0.02, 0.01, momentum()), means(4))

    def as_in_the_manual():
        opt = mox.get_optimizer_fn("momentum", learning_rate=0.125, momentum=0.875)()
        opt = mox.get_optimizer_wrapper_fn("lars", opt, ratio=0.02, weight_decay=0.01)()
        return mox.get_optimizer_wrapper_fn("batch_gradients", opt, num_batches=4, sync_on_apply=True)()

    functions = wrapped("batch_gradients", wrapped("lars", ratio=0.02, weight_decay=0.01), num_batches=4)
    for fn in (as_in_the_manual, functions):
        trained = Trained(fn)
        close(trained.run(), expected)
        own = {"net/kernel/BatchGradients", "net/kernel/Momentum", "moxing/optimizer/batch_gradients/count"}
        assert own <= set(trained.state())


@pytest.mark.parametrize(
    "order", [["ema", "batch_gradients"], ["batch_gradients", "ema"], ["lookahead", "lars", "ema"]]
)
def test_stacks_train_what_is_inside(order):
    arguments = {
        "ema": {"decay": 0.5},
        "batch_gradients": {"num_batches": 4},
        "lookahead": {"k": 2},
        "lars": {"ratio": 0.05},
    }
    fn = inner
    for name in order:
        fn = wrapped(name, fn, **arguments[name])
    trained = Trained(fn)
    values = trained.run()
    if "batch_gradients" in order:
        close(values, computed(momentum(), means(4)))
    assert all(np.isfinite(value).all() for value in values.values())
    with trained.graph.as_default():
        trained.session.run(flush_op([trained.optimizer]))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("batch_gradients", {"num_batches": 4}),
        ("lookahead", {"k": 4}),
        ("ema", {"decay": 0.5, "warm_up": True}),
        ("lars", {"ratio": 0.02}),
    ],
)
@pytest.mark.parametrize("inside", ["momentum", "adam", "lamb"])
def test_a_restart_goes_on_bit_for_bit(name, arguments, inside, tmp_path):
    fn = wrapped(name, get_optimizer_fn(inside, 0.125), **arguments)
    trained = Trained(fn)
    trained.run(10)
    path = trained.save(tmp_path)
    trained.run(STEPS, 10)
    other = Trained(fn).restore(path)
    other.run(STEPS, 10)
    for one, same in ((trained.values(), other.values()), (trained.state(), other.state())):
        assert one and one.keys() == same.keys()
        for key, value in one.items():
            np.testing.assert_array_equal(value, same[key], err_msg=key)


@pytest.mark.parametrize(("name", "slot"), [("ema", "average"), ("lookahead", "slow")])
def test_a_warm_start_begins_with_the_weights_of_the_checkpoint(name, slot):
    trained = Trained(wrapped(name, tf.train.GradientDescentOptimizer(0.0)))
    with trained.graph.as_default():
        kernel = trained.variables["kernel"]
        trained.session.run(kernel.assign(tf.fill([4, 3], np.float64(5.0))))
        trained.run(3)
        np.testing.assert_allclose(trained.session.run(trained.optimizer.get_slot(kernel, slot)), np.full([4, 3], 5.0))


@pytest.mark.parametrize("name", sorted(WRAPPERS))
def test_gradients_are_computed_as_tensorflow_does(name):
    arguments = {"num_batches": 2} if name == "batch_gradients" else {}
    assert type(wrapped(name, **arguments)()).compute_gradients is tf.train.Optimizer.compute_gradients


def test_an_optimizer_with_its_own_way_to_compute_gradients_keeps_it():
    class Clipping(tf.train.GradientDescentOptimizer):
        def compute_gradients(self, *args, **kwargs):
            return [(tf.clip_by_value(g, -1, 1), v) for g, v in super().compute_gradients(*args, **kwargs)]

    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", initializer=3.0, use_resource=True)
        optimizer = wrapped("ema", wrapped("lars", Clipping(1.0)))()
        assert type(optimizer).compute_gradients is not tf.train.Optimizer.compute_gradients
        train = optimizer.minimize(100 * w)
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(w) == 2.0


def test_no_gradients():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="LARS: no gradients provided"):
        wrapped("lars")().apply_gradients([(None, tf.get_variable("w", [1]))])

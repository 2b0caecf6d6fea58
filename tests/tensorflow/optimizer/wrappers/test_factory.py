"""Names and arguments of `get_optimizer_wrapper_fn`; wrappers of scripts."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from updates import (
    wrapped,
)

import moxing.tensorflow as mox
from moxing.tensorflow.optimizer.wrappers import factory
from moxing.tensorflow.optimizer.wrappers.factory import (
    register_optimizer_wrapper,
)
from moxing.tensorflow.optimizer.wrappers.wrapper import OptimizerWrapper


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: wrapped("batch_gradient"), ValueError, r"name='batch_gradient'\).*Did you mean 'batch_gradients'\?"),
        (lambda: wrapped("lars", 0.1), TypeError, r"\('lars', 0.1\): expected an optimizer, or a function"),
        (lambda: wrapped("lars", lambda: 0.1)(), TypeError, r"the function returned 0.1: expected a tf.train.Optim"),
        (lambda: wrapped("lars", radio=1.0), TypeError, r"'radio'; the wrapper takes ratio, weight_decay"),
        (lambda: wrapped("ema", wrapped("lars", wrapped("ema")))(), ValueError, "already wrapped in ema; wrap it once"),
        (lambda: wrapped("batch_gradients"), TypeError, "num_batches"),
        (lambda: wrapped("batch_gradients", num_batches=0)(), ValueError, r"num_batches=0\): expected an integer fr"),
        (lambda: wrapped("batch_gradients", num_batches=2, sync_on_apply=1)(), ValueError, r"sync_on_apply=1\)"),
        (lambda: wrapped("lars", ratio=0)(), ValueError, r"lars\(ratio=0\): expected a number above 0"),
        (lambda: wrapped("lars", weight_decay=-1)(), ValueError, r"lars\(weight_decay=-1\)"),
        (lambda: wrapped("lookahead", k=0)(), ValueError, r"lookahead\(k=0\)"),
        (lambda: wrapped("lookahead", alpha=2)(), ValueError, r"lookahead\(alpha=2\)"),
        (lambda: wrapped("ema", decay=1.0)(), ValueError, r"ema\(decay=1.0\)"),
        (lambda: wrapped("ema", warm_up=3)(), ValueError, r"ema\(warm_up=3\)"),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_registered_wrapper(monkeypatch):
    monkeypatch.setattr(factory, "_registered", {})

    @register_optimizer_wrapper("scaled")
    class ScaledOptimizer(OptimizerWrapper):
        repeatable = False

        def __init__(self, optimizer, factor, name="Scaled"):
            super().__init__(optimizer, name)
            self._factor = factor

        def easgd_conflict(self, side):
            return f"scaled {side} easgd: not tried"

        def _apply(self, pairs):
            return self.wrapped.apply_gradients([(gradient * self._factor, variable) for gradient, variable in pairs])

    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", initializer=3.0, use_resource=True)
        train = wrapped("scaled", wrapped("lars", ratio=1.0), factor=0.5)().minimize(w)
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(w) == 3.0 - 0.5 * 0.125
        with pytest.raises(ValueError, match="scaled inside of easgd: not tried"):
            wrapped("easgd", wrapped("scaled", factor=0.5))()
        with pytest.raises(ValueError, match="already wrapped in scaled"):
            wrapped("scaled", wrapped("scaled", factor=0.5), factor=0.5)()
    with pytest.raises(TypeError, match="'factor'; the wrapper takes factor, name"):
        wrapped("scaled", factors=1)
    with pytest.raises(ValueError, match="Did you mean 'scaled'"):
        wrapped("scale")


@pytest.mark.parametrize(
    ("name", "wrapper", "error", "message"),
    [
        ("lars", OptimizerWrapper, ValueError, "MoXing has a wrapper of this name"),
        ("Lars", OptimizerWrapper, ValueError, "expected a name in lower case"),
        ("mine", tf.train.AdamOptimizer, TypeError, "expected a subclass of OptimizerWrapper, got <class"),
        ("mine", lambda optimizer: optimizer, TypeError, "expected a subclass of OptimizerWrapper, got <function"),
    ],
)
def test_wrappers_that_cannot_be_registered(name, wrapper, error, message):
    with pytest.raises(error, match=message):
        register_optimizer_wrapper(name)(wrapper)


@pytest.mark.parametrize(
    ("sync", "job", "warns"), [(True, "/job:worker/task:0", 1), (False, "/job:worker", 0), (True, "", 0)]
)
def test_the_warning_of_the_manual(sync, job, warns, caplog):
    mox.set_flag("sync_replicas", sync)
    caplog.set_level("WARNING", logger="tensorflow")
    with tf.Graph().as_default(), tf.device(job):
        wrapped("lars")()
    line = "Using OptimizerWrapper when sync_replicas is True may cause performance loss."
    assert caplog.messages.count(line) == warns

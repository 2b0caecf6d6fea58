"""Optimizers around optimizers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from moxing.tf1 import contrib

v1 = tf.compat.v1


def test_averages_are_saved_under_the_names_of_the_variables(tmp_path: Path) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        var = v1.get_variable("w", initializer=8.0)
        optimizer = contrib.opt.MovingAverageOptimizer(v1.train.GradientDescentOptimizer(1.0), average_decay=0.5)
        with pytest.raises(RuntimeError, match="before swapping_saver"):
            optimizer.swapping_saver()
        step = optimizer.minimize(var)
        saver = optimizer.swapping_saver()
        session.run(v1.global_variables_initializer())
        session.run(step)
        session.run(step)
        saver.save(session, str(tmp_path / "swapped"))
        reader = tf.train.load_checkpoint(str(tmp_path / "swapped"))
        # 8, 7, 6; the averages 7.5 and 6.75.
        assert reader.get_tensor("w") == 6.75
        assert reader.get_tensor("w/ExponentialMovingAverage") == 6
        session.run(v1.global_variables_initializer())
        saver.restore(session, str(tmp_path / "swapped"))
        assert session.run(var) == 6


@pytest.mark.parametrize("sparse", [False, True])
def test_a_gradient_of_zeros_changes_nothing(sparse: bool) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        var = v1.get_variable("w", initializer=np.zeros([2, 1], np.float32))
        scale = v1.placeholder(tf.float32, [])
        optimizer = contrib.opt.MultitaskOptimizerWrapper(v1.train.MomentumOptimizer(1.0, 0.5))
        value = tf.gather(var, [0, 1]) if sparse else var
        pairs = optimizer.compute_gradients(scale * tf.reduce_sum(value))
        clipped, norm = contrib.opt.clip_gradients_by_global_norm(pairs, clip_norm=np.sqrt(2.0) / 2)
        step = optimizer.apply_gradients(clipped)
        session.run(v1.global_variables_initializer())
        assert session.run([norm, step], {scale: 1.0})[0] == pytest.approx(np.sqrt(2))
        # Momentum alone would go on.
        session.run(step, {scale: 0.0})
        np.testing.assert_allclose(session.run(var), -0.5, rtol=1e-5)
        session.run(step, {scale: 1.0})
        np.testing.assert_allclose(session.run(var), -0.5 - 0.75, rtol=1e-5)
        with pytest.raises(TypeError, match=r"opt must be a tf.train.Optimizer, got 3"):
            contrib.opt.MultitaskOptimizerWrapper(3)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_norm_of_rows_is_clipped(sparse: bool) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        var = v1.get_variable("w", initializer=np.array([[0.0, 1.0], [0.0, 9.0], [0.0, 0.0]], np.float32))
        other = v1.get_variable("o", initializer=5.0)
        used = tf.gather(var, [0, 2]) if sparse else var
        optimizer = contrib.opt.VariableClippingOptimizer(
            v1.train.GradientDescentOptimizer(3.0), {var: [1]}, 2.0, colocate_clip_ops_with_vars=True
        )
        step = optimizer.minimize(tf.reduce_sum(used[:, 0]) + other)
        session.run(v1.global_variables_initializer())
        session.run(step)
        value, other = session.run([var, other])
    assert other == 2
    first = np.array([-3.0, 1.0]) * 2 / np.sqrt(10)
    second = [0, 9] if sparse else np.array([-3.0, 9.0]) * 2 / np.sqrt(90)
    np.testing.assert_allclose(value, [first, second, [-2, 0]], rtol=1e-5)

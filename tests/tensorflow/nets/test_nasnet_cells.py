"""Cells: what their tables mean, drop path, how a state is brought to the size and depth of a cell."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import shapes

from moxing.tensorflow.nets import nasnet, nasnet_cells, pnasnet
from moxing.tensorflow.nets.nasnet_cells import (
    AVG_POOL_3X3,
    CURRENT,
    IDENTITY,
    MAX_POOL_3X3,
    PREVIOUS,
    SEPARABLE_3X3,
    Cell,
    CellStack,
    DropPath,
)
from moxing.tensorflow.nets.parts.batch_norm import BatchNorm
from moxing.tensorflow.nets.parts.layers import Layers

NO_DROPS = DropPath(1.0, None, num_cells=1)
#: A cell with little in it, for what happens around its operations.
PLAIN = Cell((((CURRENT, IDENTITY), (PREVIOUS, IDENTITY)),), outputs=(2,))


def layers(training: bool = False, data_format: str = "NHWC") -> Layers:
    return Layers(training=training, data_format=data_format).styled(
        # No epsilon: at the beginning, not in training, batch normalisation changes nothing.
        batch_norm=BatchNorm(epsilon=1e-12),
        activation=None,
        initializer=tf.ones_initializer(),
    )


def values(tensors, feed=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensors, feed)


@pytest.mark.parametrize("size", [4, 5])
@pytest.mark.parametrize("known", [True, False])
def test_halving_looks_at_two_diagonals(size, known):
    image = np.arange(1, size * size + 1, dtype="float32").reshape(1, size, size, 1)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [1, size, size, 1] if known else [None, None, None, 1])
        y = nasnet_cells._halved(layers(), x, 3)
        first, second = values([y[..., 0], y[..., 1:]], {x: image})
    padded = np.pad(image[0, 1:, 1:, 0], [[0, 1], [0, 1]])
    np.testing.assert_allclose(first[0], image[0, ::2, ::2, 0])
    np.testing.assert_allclose(second[0, ..., 0], padded[::2, ::2])
    # Of an odd number of channels the second path has the one more.
    assert second.shape[-1] == 2


def test_halving_the_other_order_of_axes():
    with tf.Graph().as_default():
        y = nasnet_cells._halved(layers(data_format="NCHW"), tf.zeros([2, 7, 6, 9]), 5)
        assert y.shape == [2, 5, 3, 5]


def test_first_cell_sees_its_input_twice():
    image = np.full((1, 2, 2, 3), 2.0, "float32")
    with tf.Graph().as_default():
        stack = CellStack(layers(), tf.constant(image), NO_DROPS)
        cell = Cell((((CURRENT, IDENTITY), (PREVIOUS, MAX_POOL_3X3)),), outputs=(CURRENT, PREVIOUS, 2))
        assert stack.below_top is None
        got = values(stack.add(cell, 2, scope="cell"))
        # 3 channels are brought to 2 in the branch, and once more for the output.
        assert {name: shape for name, shape in shapes().items() if "weights" in name} == {
            "cell/1x1/weights": [1, 1, 3, 2],
            "cell/comb_iter_0/right/1x1/weights": [1, 1, 3, 2],
            "cell/cell_output/reduction_1/path_conv/weights": [1, 1, 3, 2],
        }
    # Weights of one: 3 channels of 2 add up to 6.
    np.testing.assert_allclose(got[0, 0, 0], [6, 6, 6, 6, 12, 12])


def test_activation_before_a_convolution_but_not_before_pooling():
    with tf.Graph().as_default():
        x = tf.fill([1, 2, 2, 1], -1.0)
        net = layers()
        results = []
        for name, operation in (("a", SEPARABLE_3X3), ("b", IDENTITY), ("c", AVG_POOL_3X3), ("d", MAX_POOL_3X3)):
            with net.scope(name):
                results.append(operation(net, x, 2, 1)[0, 0, 0, 0])
        np.testing.assert_allclose(values(results), [0, 0, -1, -1])


def test_previous_is_brought_to_size_and_depth():
    with tf.Graph().as_default():
        stack = CellStack(layers(), tf.zeros([1, 8, 8, 4]), NO_DROPS)
        stack.add(PLAIN, 4, scope="first", stride=2)
        stack.add(PLAIN, 6, scope="smaller")
        stack.add(PLAIN, 6, scope="shallower")
        stack.add(PLAIN, 6, scope="equal")
        assert stack.top.shape == [1, 4, 4, 6]
        names = shapes()
    assert names["smaller/path1_conv/weights"] == [1, 1, 4, 3]
    assert names["shallower/prev_1x1/weights"] == [1, 1, 4, 6]
    assert not [name for name in names if name.startswith(("first/p", "equal/p", "equal/cell_output"))]


def test_previous_of_an_earlier_time():
    with tf.Graph().as_default():
        stack = CellStack(layers(), tf.zeros([1, 8, 8, 3]), NO_DROPS)
        stack.add(PLAIN, 4, scope="a")
        below = stack.below_top
        stack.add(PLAIN, 5, scope="b", stride=2)
        stack.add(PLAIN, 6, scope="c", previous=below)
        assert shapes()["c/path1_conv/weights"] == [1, 1, 3, 3]


def test_only_the_states_from_outside_are_strided():
    with tf.Graph().as_default():
        stack = CellStack(layers(), tf.zeros([1, 9, 9, 4]), NO_DROPS)
        cell = Cell(
            (((CURRENT, SEPARABLE_3X3), (PREVIOUS, IDENTITY)), ((2, SEPARABLE_3X3), (2, AVG_POOL_3X3))), outputs=(2, 3)
        )
        assert stack.add(cell, 4, scope="cell", stride=2).shape == [1, 5, 5, 8]


def test_drop_path_grows_with_the_cell_and_the_step():
    schedule = DropPath(keep_prob=0.6, total_training_steps=100, num_cells=4)
    with tf.Graph().as_default():
        # No global step: as at the end of training.
        assert schedule.keep_prob_in(0) == pytest.approx(0.9)
        assert schedule.keep_prob_in(3) == pytest.approx(0.6)
        step = tf.train.get_or_create_global_step()
        assert DropPath(0.6, None, 4).keep_prob_in(3) == pytest.approx(0.6)
        keep_prob = schedule.keep_prob_in(1)
        with tf.Session() as session:
            for at, expected in ((0, 1.0), (50, 0.9), (100, 0.8), (1000, 0.8)):
                session.run(step.initializer, {step.initial_value: at})
                assert session.run(keep_prob) == pytest.approx(expected)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float16])
def test_whole_images_are_dropped_and_the_others_scaled(dtype):
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        y = nasnet_cells.dropped(tf.ones([4000, 2, 2, 3], dtype), 0.8)
        assert y.dtype == dtype
        got = values(y).reshape(4000, -1).astype("float32")
    assert (got == got[:, :1]).all()
    kept = got[:, 0] > 0
    # Five standard deviations: 5 * sqrt(0.8 * 0.2 / 4000).
    assert kept.mean() == pytest.approx(0.8, abs=0.032)
    np.testing.assert_allclose(got[kept, 0], 1.25, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "branches"),
    [(nasnet.NORMAL, 8), (nasnet.REDUCTION, 9), (pnasnet.CELL, 9)],
    ids=["normal", "reduction", "5"],
)
def test_every_branch_but_the_unchanged_ones_is_dropped_in_training_only(cell, branches):
    def drops(training: bool, keep_prob: float) -> int:
        with tf.Graph().as_default() as graph:
            stack = CellStack(layers(training), tf.zeros([2, 8, 8, 4]), DropPath(keep_prob, None, num_cells=1))
            stack.add(cell, 4, scope="cell")
            return sum("random_uniform/RandomUniform" in op.name for op in graph.get_operations())

    assert drops(True, 0.5) == branches
    assert drops(False, 0.5) == drops(True, 1.0) == 0

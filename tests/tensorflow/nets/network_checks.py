"""What the tests of the networks share: building one, looking at its variables, and checks that many of them repeat.

`build` stands for a function that takes the shape of the images, then what `built` takes, and gives layers and output.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.layers import Layers


def slow_if(values, is_slow) -> list:
    """The values of a parametrised test, of which some are slow tests."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
        if is_slow(value)
        else value
        for value in values
    ]


def built(
    architecture, shape, num_classes=10, training=False, data_format="NHWC", weight_decay=0.0, **options
) -> tuple[Layers, tf.Tensor]:
    """Layers and output of a network, in the default graph; the images are fed as `images:0`."""
    net = Layers(training=training, data_format=data_format, weight_decay=weight_decay)
    return net, architecture(net, tf.placeholder(tf.float32, shape, name="images"), num_classes, **options)


def built_with_shapes(architecture, shape, num_classes=10, **options) -> tuple[Layers, tf.Tensor, dict[str, list[int]]]:
    """Layers, output and the shapes of the variables of a network with weight decay, in the default graph."""
    return *built(architecture, shape, num_classes, weight_decay=0.1, **options), shapes()


def shapes() -> dict[str, list[int]]:
    """The variables of the default graph: their names and shapes."""
    return {variable.op.name: variable.shape.as_list() for variable in tf.global_variables()}


def shapes_of(build, *arguments, **options) -> dict[str, list[int]]:
    """The variables that a call of `build` makes in a graph of its own."""
    with tf.Graph().as_default():
        build(*arguments, **options)
        return shapes()


def run(fetches, shape):
    """The values for noise as images, right after the initialisation."""
    images = np.random.default_rng(0).uniform(-1, 1, shape)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, {"images:0": images})


def differing_shapes(first, second, logits_pattern) -> set[str]:
    """The variables that two networks, with different numbers of classes, have in different shapes.

    Checks that both have the same variables, and that the pattern finds these and no others.
    """
    assert list(first) == list(second)
    differing = {name for name in first if first[name] != second[name]}
    assert differing == {name for name in first if re.search(logits_pattern, name)}
    return differing


def dependent_on_classes(build, logits_pattern, *shape) -> set[str]:
    """The variables of a network in training that depend on the number of classes; the pattern finds these."""
    ten, seven = (shapes_of(build, *shape, num_classes=num_classes, training=True) for num_classes in (10, 7))
    return differing_shapes(ten, seven, logits_pattern)


def channels_first(build, shape) -> Layers:
    """The layers of a network in NCHW; checks that it has the variables and the logits of the one in NHWC.

    Args:
      build: builds the network.
      shape: of the images in NHWC.
    """
    batch, height, width, channels = shape
    found = []
    for data_format, images in (("NHWC", shape), ("NCHW", (batch, channels, height, width))):
        with tf.Graph().as_default():
            net, logits = build(images, training=True, data_format=data_format)[:2]
            assert logits.shape.as_list() == [batch, 10]
            found.append(shapes())
    assert found[0] == found[1]
    return net


def strided_and_dense(features, output_stride) -> tuple[np.ndarray, np.ndarray]:
    """Features of an image, and those with an output stride at the same places, from the same variables.

    Args:
      features: builds them from images and `output_stride`; without one they are at every 32nd pixel.
      output_stride: the other one.
    """
    # An odd number of pixels at every stride, so that SAME looks at the same ones in both.
    images = np.random.default_rng(1).uniform(-1, 1, (1, 65, 65, 3)).astype("float32")
    length = 64 // output_stride + 1
    with tf.Graph().as_default(), tf.variable_scope("", reuse=tf.AUTO_REUSE), tf.Session() as session:
        both = [features(tf.constant(images), output_stride=stride) for stride in (None, output_stride)]
        assert [x.shape.as_list()[1:3] for x in both] == [[3, 3], [length, length]]
        session.run(tf.global_variables_initializer())
        strided, dense = session.run(both)
    assert strided.shape[:3] == (1, 3, 3)
    assert dense.shape == (1, length, length, strided.shape[3])
    assert np.abs(strided).max() > 0
    step = 32 // output_stride
    return strided, dense[:, ::step, ::step]


def check_every_variable_learns(build, shape) -> None:
    """Every variable has a gradient that is finite and not 0, and every normalisation moves its two averages."""
    with tf.Graph().as_default():
        _, logits = build(shape, training=True)
        loss = tf.losses.sparse_softmax_cross_entropy([0, 1, 2, 3], logits)
        gradients = tf.gradients(loss, tf.trainable_variables())
        assert None not in gradients
        assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2 * sum("gamma" in name for name in shapes())
        values = run(gradients, shape)
    assert all(np.isfinite(value).all() and np.abs(value).max() > 0 for value in values)


def check_features_of_unknown_sizes(build, sizes) -> None:
    """A ResNet without classes gives one row of 2,048 features, whatever size the images turn out to have."""
    with tf.Graph().as_default():
        _, features = build((None, None, None, 3), None)
        assert features.shape.as_list() == [None, 1, 1, 2048]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for size in sizes:
                assert session.run(features, {"images:0": np.ones((1, size, size, 3))}).shape == (1, 1, 1, 2048)


#: For tests of networks that take images of any size: height and width, and whether the network is trained.
any_size = pytest.mark.parametrize(
    ("side", "training"), [((1, 1), True), ((1, 1), False), ((33, 50), True), ((256, 320), False), ((None, None), True)]
)


def check_one_row_of_logits(build, side, training) -> None:
    """Logits and predictions have no places left."""
    with tf.Graph().as_default():
        net, logits = build([2, *side, 3], training=training)[:2]
        assert logits.shape.as_list() == [2, 10] == net.end_points["Predictions"].shape.as_list()


def check_too_small(build, shape) -> None:
    """A layer without padding finds too few pixels."""
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Negative dimension size"):
        build(shape)


def check_it_learns(architecture, channels, brightness, optimizer, steps, loss_below) -> None:
    """A few steps teach a network to tell which row of an image is bright; its predictions add up to 1."""
    generator = np.random.default_rng(0)
    images, labels = generator.normal(size=[32, 12, 12, channels]), generator.integers(4, size=32)
    images[np.arange(32), labels * 3] += brightness  # a bright row, which the label counts
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(0)
        net = Layers(training=True)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, architecture(net, tf.constant(images, tf.float32), 4))
        step = optimizer.minimize(loss)
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(step)
        assert session.run(loss) < loss_below
        np.testing.assert_allclose(session.run(net.end_points["Predictions"]).sum(1), 1, rtol=1e-5)

"""AlexNet: sizes, initial values, options."""

from __future__ import annotations

import classified_checks
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import built, channels_first, dependent_on_classes

from moxing.tensorflow.nets.alexnet import NETWORKS

NETWORK = NETWORKS["alexnet_v2"]


def build(shape=(2, 224, 224, 3), **options):
    return built(NETWORK.architecture, shape, **options)


def test_only_the_last_layer_depends_on_the_classes():
    differing = dependent_on_classes(build, NETWORK.logits_pattern)
    assert differing == {"alexnet_v2/fc8/weights", "alexnet_v2/fc8/biases"}


@pytest.mark.parametrize("shape", [(2, 288, 320, 3), (2, None, None, 3), (None, None, 224, 3)])
def test_other_sizes_are_pooled(shape):
    classified_checks.check_other_sizes_are_pooled(build, shape, "alexnet_v2", fc6=[5, 5, 256, 4096])


def test_smallest():
    classified_checks.check_smallest(build, "alexnet_v2", NETWORK.smallest)


def test_features():
    classified_checks.check_features(build, "alexnet_v2")


def test_channels_first():
    net = channels_first(build, (2, 256, 256, 3))
    assert net.end_points["alexnet_v2/conv5"].shape.as_list()[:2] == [2, 256]


def test_options():
    classified_checks.check_options(build)


def test_all_weights_decay():
    classified_checks.check_all_weights_decay(build)


def test_initial_values():
    classified_checks.check_initial_values(build, "alexnet_v2", first_biases=0.1)


@pytest.mark.slow
def test_unknown_sizes_run():
    image = np.random.default_rng(0).uniform(-1, 1, [1, 288, 230, 3]).astype("float32")
    with tf.Graph().as_default(), tf.Session() as session:
        known = build((1, 288, 230, 3))[1]
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            unknown = build((None, None, None, 3))[1]
        session.run(tf.global_variables_initializer())
        feed = {op.outputs[0]: image for op in tf.get_default_graph().get_operations() if op.type == "Placeholder"}
        first, second = session.run([known, unknown], feed)
        assert first.shape == (1, 10)
        assert first.std() > 0
        np.testing.assert_allclose(first, second, rtol=1e-5)

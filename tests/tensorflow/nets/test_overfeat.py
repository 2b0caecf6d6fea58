"""OverFeat: sizes, initial values, options."""

from __future__ import annotations

import classified_checks
import pytest
from network_checks import built, channels_first, dependent_on_classes

from moxing.tensorflow.nets.overfeat import NETWORKS

NETWORK = NETWORKS["overfeat"]


def build(shape=(2, 231, 231, 3), **options):
    return built(NETWORK.architecture, shape, **options)


def test_only_the_last_layer_depends_on_the_classes():
    differing = dependent_on_classes(build, NETWORK.logits_pattern)
    assert differing == {"overfeat/fc8/weights", "overfeat/fc8/biases"}


@pytest.mark.parametrize("shape", [(2, 288, 320, 3), (2, None, None, 3), (None, None, 231, 3)])
def test_other_sizes_are_pooled(shape):
    classified_checks.check_other_sizes_are_pooled(build, shape, "overfeat", fc6=[6, 6, 1024, 3072])


def test_smallest():
    classified_checks.check_smallest(build, "overfeat", NETWORK.smallest)


def test_features():
    classified_checks.check_features(build, "overfeat")


def test_channels_first():
    net = channels_first(build, (2, 256, 256, 3))
    assert net.end_points["overfeat/conv5"].shape.as_list()[:2] == [2, 1024]


def test_options():
    classified_checks.check_options(build)


def test_all_weights_decay():
    classified_checks.check_all_weights_decay(build)


def test_initial_values():
    classified_checks.check_initial_values(build, "overfeat", first_biases=0)

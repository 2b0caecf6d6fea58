"""Small ResNets: parameters, the two kinds of shortcuts, sizes, axes, training."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import built, channels_first, check_every_variable_learns, dependent_on_classes, run, shapes

from moxing.tensorflow.nets.resnet_v1_small import NETWORKS, resnet_v1_cifar, resnet_v1_imagenet


def build(name, shape, num_classes=10, **options):
    return built(NETWORKS[name].architecture, shape, num_classes, **options)


# ResNet-18: torchvision states 11,689,512 with 1,000 classes (`num_params` of ResNet18_Weights). ResNet-20 and -110:
# the paper (table 6) states 0.27 and 1.7 million; in full, with widths 16, 32, 64, n units a block and 10 classes:
# 432 of the first layer, 9 (16² + 32² + 64²) (2n - 1) + 9 (16² + 16 32 + 32 64) of the units' convolutions,
# 2 (16 + 2n (16 + 32 + 64)) of the normalisations, 650 of the logits.
def cifar_parameters(n):
    convolutions = 9 * (16**2 + 32**2 + 64**2) * (2 * n - 1) + 9 * (16**2 + 16 * 32 + 32 * 64)
    return 432 + convolutions + 2 * (16 + 2 * n * (16 + 32 + 64)) + 650


@pytest.mark.parametrize(
    ("name", "num_classes", "parameters"),
    [("resnet_v1_18", 1000, 11_689_512), ("resnet_v1_20", 10, 269_722), ("resnet_v1_110", 10, 1_727_962)],
)
def test_parameters(name, num_classes, parameters):
    with tf.Graph().as_default():
        build(name, (1, 32, 32, 3), num_classes)
        assert sum(variable.shape.num_elements() for variable in tf.trainable_variables()) == parameters
        assert all(variable.op.name.startswith(f"{NETWORKS[name].scope}/") for variable in tf.global_variables())
        # Every convolution beside the shortcuts is a layer, and so are the logits: the number in the name.
        layers = [key for key in shapes() if key.endswith("/weights") and "shortcut" not in key]
        assert len(layers) == int(name.rsplit("_", 1)[1])
    if num_classes == 10:
        assert cifar_parameters({"resnet_v1_20": 3, "resnet_v1_110": 18}[name]) == parameters


def test_image_sizes_and_labels():
    assert [(n.image_size, n.labels_offset) for n in NETWORKS.values()] == [(224, 1), (32, 0), (32, 0)]


def test_projections_stand_where_the_depth_changes():
    with tf.Graph().as_default():
        net, _ = build("resnet_v1_18", (1, 224, 224, 3))
        projections = [name for name in shapes() if name.endswith("shortcut/weights")]
        assert projections == [f"resnet_v1_18/block{n}/unit_1/basic_v1/shortcut/weights" for n in (2, 3, 4)]
        ends = [net.end_points[f"resnet_v1_18/block{n}"].shape.as_list() for n in (1, 2, 3, 4)]
        assert ends == [[1, 56, 56, 64], [1, 28, 28, 128], [1, 14, 14, 256], [1, 7, 7, 512]]


def test_shortcuts_without_weights():
    with tf.Graph().as_default():
        net, _ = build("resnet_v1_20", (1, 32, 32, 3), training=True)
        assert not any("shortcut" in name for name in shapes())
        unit = "resnet_v1_20/block2/unit_1/basic_v1"
        before, added, after = run(
            [net.end_points[name] for name in ("resnet_v1_20/block1", f"{unit}/conv2", unit)], (1, 32, 32, 3)
        )
    assert after.shape == (1, 16, 16, 32)
    around = np.pad(before[:, ::2, ::2], [(0, 0), (0, 0), (0, 0), (8, 8)])
    np.testing.assert_allclose(after, np.maximum(around + added, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "stride"), [("resnet_v1_18", 32), ("resnet_v1_20", 4)])
@pytest.mark.parametrize("size", [1, 21])
def test_sizes_unknown_before_the_run(name, stride, size):
    assert NETWORKS[name].smallest == 1
    with tf.Graph().as_default():
        net, logits = build(name, (None, None, None, 3))
        assert logits.shape.as_list() == [None, 10]
        last = run(net.end_points[f"{name}/block{4 if stride == 32 else 3}"], (2, size, size + 4, 3))
    assert last.shape[:3] == (2, -(-size // stride), -(-(size + 4) // stride))


@pytest.mark.parametrize(("name", "depth"), [("resnet_v1_18", 512), ("resnet_v1_20", 64)])
def test_features(name, depth):
    with tf.Graph().as_default():
        net, features = build(name, (2, 32, 32, 3), None)
        assert features is net.end_points["global_pool"]
        assert features.shape.as_list() == [2, 1, 1, depth]
        assert not any("logits" in key for key in [*shapes(), *net.end_points])


def test_logits_of_every_place():
    with tf.Graph().as_default():
        assert build("resnet_v1_18", (2, 64, 96, 3), global_pool=False)[1].shape.as_list() == [2, 2, 3, 10]
    with tf.Graph().as_default():
        assert build("resnet_v1_20", (2, 32, 48, 3), global_pool=False)[1].shape.as_list() == [2, 8, 12, 10]
    with tf.Graph().as_default():
        assert build("resnet_v1_20", (2, 32, 32, 3), spatial_squeeze=False)[1].shape.as_list() == [2, 1, 1, 10]


@pytest.mark.parametrize(("name", "last"), [("resnet_v1_18", [2, 512, 1, 2]), ("resnet_v1_20", [2, 64, 8, 16])])
def test_channels_first(name, last):
    net = channels_first(partial(build, name), (2, 32, 64, 3))
    assert net.end_points[f"{name}/block{4 if last[1] == 512 else 3}"].shape.as_list() == last


@pytest.mark.parametrize("name", ["resnet_v1_18", "resnet_v1_20"])
def test_logits_pattern_hits_what_depends_on_the_classes(name):
    differing = dependent_on_classes(partial(build, name), NETWORKS[name].logits_pattern, (2, 32, 32, 3))
    assert differing == {f"{name}/logits/weights", f"{name}/logits/biases"}


@pytest.mark.parametrize(("architecture", "units"), [(resnet_v1_imagenet, (1, 1, 1, 1)), (resnet_v1_cifar, (1, 1, 1))])
def test_every_variable_learns(architecture, units):
    check_every_variable_learns(partial(built, partial(architecture, name="short", units=units)), (4, 32, 32, 3))

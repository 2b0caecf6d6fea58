"""The registry of networks: every name leads to its network, and what the zoo says of it is true."""

from __future__ import annotations

import copy
import importlib
import re
import sys
import traceback
from dataclasses import replace

import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow import network_registry
from moxing.tensorflow.nets.nets_factory import get_model_fn, get_model_meta
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.network_registry import Network, NetworkKeys, network, register_network

#: 1 where the published weights know 1,000 classes, 0 where they know a background class too; 1 for every ResNet for
#: ImageNet, as the manual has it.
WITHOUT_BACKGROUND = re.compile("alexnet|overfeat|pvanet|vgg|resnext|resnet_v1_(18|50|101|152|200)|resnet_v2")

#: In the manual's order (its table of networks, and the later additions).
NAMES = [
    "alexnet_v2", "cifarnet", "overfeat", "vgg_a", "vgg_16", "vgg_19", "vgg_a_bn", "vgg_16_bn", "vgg_19_bn",
    "inception_v1", "inception_v2", "inception_v3", "inception_v4", "inception_resnet_v2", "lenet", "resnet_v1_18",
    "resnet_v1_20", "resnet_v1_50", "resnet_v1_50_8k", "resnet_v1_101", "resnet_v1_110", "resnet_v1_152",
    "resnet_v1_200", "resnet_v2_50", "resnet_v2_101", "resnet_v2_152", "resnet_v2_200", "resnext_b_50",
    "resnext_b_101", "resnext_c_50", "resnext_c_101", "pvanet", "mobilenet_v1", "mobilenet_v1_075",
    "mobilenet_v1_050", "mobilenet_v1_025", "mobilenet_v2", "mobilenet_v2_140", "mobilenet_v2_035", "nasnet_cifar",
    "nasnet_mobile", "nasnet_large", "pnasnet_large", "pnasnet_mobile", "resnet_v1_50_mox", "resnet_v1_50_oct",
    "xception_41", "xception_65", "xception_71",
]  # fmt: skip


def test_the_names_of_the_manual():
    assert set(NAMES) <= {key.value for key in NetworkKeys}
    assert len(NAMES) == len(set(NAMES)) == 49
    for key in NetworkKeys:
        assert key.name == key.value.upper()
    assert mox.NetworkKeys is NetworkKeys


@pytest.mark.parametrize("key", NetworkKeys)
def test_a_name_leads_to_its_network(key):
    found = network(key)
    architecture = found.architecture
    options = getattr(architecture, "keywords", {})
    # Those that the family names in its scopes know their name.
    assert options.get("name", key.value) == key.value
    assert found.smallest <= found.image_size
    if key in NAMES:
        assert found.labels_offset == (1 if WITHOUT_BACKGROUND.match(key) else 0)
        assert found.channels == (1 if key == "lenet" else 3)
    re.compile(found.logits_pattern)
    meta = get_model_meta(key)
    assert meta == (found.image_size, found.labels_offset, found.logits_pattern)
    assert meta._fields == ("default_image_size", "default_labels_offset", "default_logits_pattern")


def test_every_network_is_its_own():
    architectures = [network(key).architecture for key in NetworkKeys]
    described = {
        (getattr(a, "func", a), repr(sorted(getattr(a, "keywords", {}).items(), key=str))) for a in architectures
    }
    assert len(described) == len(NetworkKeys)


@pytest.mark.parametrize("key", NetworkKeys)
def test_the_image_size_is_that_of_the_augmentation(key):
    augmentation = mox.get_data_augmentation_fn(key, mox.ModeKeys.EVAL)
    assert (augmentation.output_height, augmentation.output_width) == (network(key).image_size,) * 2


@pytest.mark.parametrize(
    ("name", "size", "offset", "pattern"),
    [
        ("resnet_v1_50", 224, 1, "logits"),
        ("inception_v3", 299, 0, "/Logits/|AuxLogits/Conv2d_2b"),
        ("vgg_16", 224, 1, "fc8"),
    ],
)
def test_what_scripts_ask(name, size, offset, pattern):
    assert mox.get_model_meta(name) == (size, offset, pattern)
    assert mox.get_model_meta(name).default_image_size == size


def shapes(name, num_classes):
    with tf.Graph().as_default():
        found = network(NetworkKeys(name))
        size = max(found.smallest, 32)
        found.architecture(Layers(training=True), tf.zeros([1, size, size, found.channels]), num_classes)
        return {variable.op.name: variable.shape.as_list() for variable in tf.global_variables()}


@pytest.mark.parametrize(
    "name",
    ["lenet", "cifarnet", "mobilenet_v1_025", "resnet_v1_18", "resnet_v1_20", "inception_v1", "alexnet_v2", "vgg_a"],
)
def test_the_pattern_hits_what_depends_on_the_number_of_classes(name):
    ten, seven = shapes(name, 10), shapes(name, 7)
    assert ten.keys() == seven.keys()
    differing = {variable for variable in ten if ten[variable] != seven[variable]}
    found = network(NetworkKeys(name))
    assert differing == {variable for variable in ten if re.search(found.logits_pattern, variable)}
    assert differing
    assert all(variable.startswith(f"{found.scope}/") for variable in ten)


def test_the_pattern_works_in_the_scope_of_a_user():
    with tf.Graph().as_default(), tf.variable_scope("outer"):
        get_model_fn("inception_v1", "EVAL", 3)(tf.zeros([1, 32, 32, 3]))
        pattern = get_model_meta("inception_v1").default_logits_pattern
        hit = [variable.op.name for variable in tf.global_variables() if re.search(pattern, variable.op.name)]
        assert [name.rpartition("/")[2] for name in hit] == ["weights", "biases"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("RESNET50", "mox.NetworkKeys has no RESNET50; did you mean RESNET_V1_50 or "),
        ("vgg16", "mox.NetworkKeys has no vgg16; did you mean VGG_16 or "),
        ("QQQ", "mox.NetworkKeys has no QQQ; `moxing zoo` lists all networks."),
    ],
)
def test_an_unknown_key(name, message):
    with pytest.raises(AttributeError, match=re.escape(message)) as caught:
        getattr(mox.NetworkKeys, name)
    # Python adds its own suggestion to the traceback if it finds the object.
    assert "".join(traceback.format_exception(caught.value)).count("id you mean") == message.count("did you mean")


def test_the_keys_are_still_an_enumeration():
    assert mox.NetworkKeys.LENET is mox.NetworkKeys["LENET"] is mox.NetworkKeys("lenet")
    assert copy.deepcopy(mox.NetworkKeys.LENET) is mox.NetworkKeys.LENET
    assert getattr(mox.NetworkKeys, "RESNET50", None) is None
    assert not hasattr(mox.NetworkKeys, "_not_there") and not hasattr(mox.NetworkKeys, "__not_there__")


def test_a_name_imports_only_its_module(monkeypatch):
    modules = {f"moxing.tensorflow.nets.{key.module}" for key in NetworkKeys}
    for module in modules:
        monkeypatch.delitem(sys.modules, module, raising=False)
    network("lenet")
    assert modules & set(sys.modules) == {"moxing.tensorflow.nets.lenet"}


def test_every_module_of_the_zoo_names_its_networks():
    for key in NetworkKeys:
        assert network(key).architecture
    modules = {key.module for key in NetworkKeys}
    tables = [importlib.import_module(f"moxing.tensorflow.nets.{module}").NETWORKS for module in modules]
    assert sorted(name for table in tables for name in table) == sorted(NetworkKeys)


def flat_network(net, images, num_classes, *, depth=4):
    with net.scope("flat"):
        x = net.end_point("features", net.dense(net.flatten(images), depth, scope="fc1"))
        return x if num_classes is None else net.styled(activation=None).dense(x, num_classes, scope="logits")


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(network_registry, "_registered", {})
    found = Network(flat_network, scope="flat", image_size=6, logits_pattern="logits", preprocessing="inception")
    register_network("flat", found)


@pytest.mark.usefixtures("registered")
def test_a_registered_network_is_built_like_any_other():
    with tf.Graph().as_default(), tf.Session() as session:
        images = tf.constant(255, tf.uint8, [2, 6, 6, 3])
        logits, end_points = mox.get_model_fn("flat", "TRAIN", num_classes=3, depth=5)(images)
        assert logits.shape == [2, 3] and end_points["features"].shape == [2, 5]
        assert [variable.op.name for variable in tf.trainable_variables()] == [
            f"flat/{layer}/{kind}" for layer in ("fc1", "logits") for kind in ("weights", "biases")
        ]
        session.run(tf.global_variables_initializer())
        assert session.run(logits).shape == (2, 3)
    assert mox.get_model_meta("Flat") == (6, 0, "logits")
    augmentation = mox.get_data_augmentation_fn("flat", "EVAL", central_fraction=0.5)
    assert (augmentation.output_height, augmentation.output_width) == (6, 6)


@pytest.mark.usefixtures("registered")
def test_names_of_registered_networks_are_suggested():
    with pytest.raises(ValueError, match=r"get_model_fn\(name='flat_'\): no such network; did you mean 'flat'"):
        mox.get_model_fn("flat_", "TRAIN", 3)
    with pytest.raises(TypeError, match=r"get_model_fn\('flat', ...\) has no argument depht \(did you mean depth\?\)"):
        mox.get_model_fn("flat", "TRAIN", 3, depht=2)


@pytest.mark.usefixtures("registered")
def test_names_that_cannot_be_registered():
    for name, message in (("lenet", "the zoo has a network of this name"), ("Mine", "lower case"), ("", "lower case")):
        with pytest.raises(ValueError, match=message):
            register_network(name, network("flat"))


def no_default(net, images, num_classes, *, depth):
    return images


def too_few(net, images):
    return images


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"smallest": 64},
            ValueError,
            "Network(smallest=64, image_size=6)): expected smallest to be at most image_size.",
        ),
        ({"architecture": no_default}, TypeError, "Network(architecture=no_default)): the option depth has no default"),
        (
            {"architecture": too_few},
            TypeError,
            "too many positional arguments; expected (net, images, num_classes, *, ",
        ),
        ({"architecture": "flat"}, TypeError, "Network(architecture=flat)): expected a function (net, images, "),
    ],
)
def test_networks_that_cannot_be_registered(changes, error, message):
    with pytest.raises(error, match=re.escape("register_network('other', ") + ".*" + re.escape(message)):
        register_network("other", replace(network("flat"), **changes))
    with pytest.raises(ValueError, match="no such network"):
        get_model_meta("other")


def test_something_else_than_a_network():
    with pytest.raises(
        TypeError, match=r"register_network\('other', <function flat_network .*>\): expected a Network\("
    ):
        register_network("other", flat_network)


@pytest.mark.usefixtures("registered")
def test_a_name_can_be_registered_again():
    register_network("flat", replace(network("flat"), image_size=8))
    assert network("flat").image_size == 8


@pytest.mark.usefixtures("registered")
def test_an_unknown_preprocessing():
    register_network("flat", replace(network("flat"), preprocessing="caffe"))
    with pytest.raises(ValueError, match=r"Network\(preprocessing='caffe'\): expected one of cifarnet, inception, "):
        mox.get_data_augmentation_fn("flat", "EVAL")


def test_unknown():
    with pytest.raises(
        ValueError,
        match=r"get_model_meta\(name='inceptionv3'\): no such network; did you mean 'inception_v3' .*\? Register a "
        "network of your own with register_network before this call.",
    ):
        get_model_meta("inceptionv3")

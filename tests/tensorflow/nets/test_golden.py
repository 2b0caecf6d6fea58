"""Every network that TF-Slim published, against its variables, end points and logits; and NCHW against NHWC."""

import golden_values
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from network_checks import shapes, slow_if

import moxing.tensorflow as mox
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.network_registry import NetworkKeys, network

#: Large; a smaller network of the same family, or one of the same layers, is checked by every run.
LARGE = {
    *("inception_resnet_v2", "inception_v4", "nasnet_cifar", "nasnet_large", "nasnet_mobile", "overfeat"),
    *("pnasnet_large", "pnasnet_mobile", "resnet_v1_101", "resnet_v1_152", "resnet_v1_200", "resnet_v2_50"),
    *("resnet_v2_101", "resnet_v2_152", "resnet_v2_200", "vgg_16", "vgg_a"),
}


@pytest.mark.parametrize("name", slow_if(golden_values.NAMES, LARGE.__contains__))
def test_is_the_published_network(name):
    reference = golden_values.golden(name)
    with tf.Graph().as_default(), tf.Session() as session:
        images = golden_values.image_of(reference["image_size"], reference["channels"])
        model = mox.get_model_fn(name, mox.ModeKeys.EVAL, reference["num_classes"], preprocess_fn=None)
        logits, end_points = model(tf.constant(images))
        assert shapes() == dict(map(tuple, reference["variables"]))
        assert sorted(variable.op.name for variable in tf.trainable_variables()) == sorted(reference["trainable"])
        assert sorted(end_points) == sorted(reference["end_points"])
        assert logits.shape.as_list() == [1, reference["num_classes"]]
        if "logits" in reference:
            golden_values.assign_values(session)
            expected = np.array(reference["logits"])
            found = session.run(logits)[0]
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def logits_of(name, data_format, size):
    """The logits of the graph that is really built in that format; on a CPU the layout optimizer makes it runnable."""
    found = network(NetworkKeys(name))
    config = tf.ConfigProto()
    rewriting = config.graph_options.rewrite_options
    rewriting.cpu_layout_conversion = rewriting.NCHW_TO_NHWC
    with tf.Graph().as_default() as graph, tf.Session(config=config) as session:
        # Fed, or the optimizer would compute the logits before it changes the layout.
        images = tf.placeholder(tf.float32, [2, size, size, found.channels])
        x = tf.transpose(images, [0, 3, 1, 2]) if data_format == "NCHW" else images
        logits = found.architecture(Layers(training=False, data_format=data_format), x, 10)
        formats = {op.get_attr("data_format") for op in graph.get_operations() if op.type in ("Conv2D", "MaxPool")}
        assert formats == {data_format.encode()}
        golden_values.assign_values(session)
        return session.run(logits, {images: golden_values.image_of(size, found.channels, batch=2)})


#: Those that take longest, of the list below.
LONG_IN_NCHW = {
    *("alexnet_v2", "inception_resnet_v2", "inception_v1", "inception_v2", "inception_v3", "inception_v4"),
    *("mobilenet_v2_035", "nasnet_cifar", "overfeat", "pnasnet_mobile", "pvanet", "resnet_v1_50"),
    *("resnet_v1_50_mox", "resnet_v1_50_oct", "resnet_v2_50", "resnext_b_50", "resnext_c_50", "vgg_a_bn"),
    "xception_41",
}
IN_BOTH_FORMATS = [
    *(("alexnet_v2", 224), ("cifarnet", 32), ("inception_resnet_v2", 75), ("inception_v1", 64)),
    *(("inception_v2", 64), ("inception_v3", 75), ("inception_v4", 75), ("lenet", 28), ("mobilenet_v1_025", 64)),
    *(("mobilenet_v2_035", 64), ("nasnet_cifar", 32), ("overfeat", 231), ("pnasnet_mobile", 64), ("pvanet", 192)),
    *(("resnet_v1_18", 64), ("resnet_v1_20", 32), ("resnet_v1_50", 64), ("resnet_v1_50_mox", 64)),
    *(("resnet_v1_50_oct", 64), ("resnet_v2_50", 64), ("resnext_b_50", 64), ("resnext_c_50", 64)),
    *(("vgg_a_bn", 224), ("xception_41", 64)),
]


@pytest.mark.parametrize(("name", "size"), slow_if(IN_BOTH_FORMATS, lambda pair: pair[0] in LONG_IN_NCHW))
def test_nchw_computes_the_same_as_nhwc(name, size):
    expected = logits_of(name, "NHWC", size)
    np.testing.assert_allclose(logits_of(name, "NCHW", size), expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())

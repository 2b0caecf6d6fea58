"""NCHW and NHWC, with and without a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.nets.nets_factory import get_model_fn

#: With a batch normalisation, fast to build.
NAME = "resnet_v1_20"


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(4)
        yield graph


def run(*tensors, feed=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensors, feed)


def shared():
    """Networks that are built inside have the same variables."""
    return tf.variable_scope("", reuse=tf.AUTO_REUSE)


def convolution_formats(graph):
    return {op.get_attr("data_format").decode() for op in graph.get_operations() if op.type == "Conv2D"}


def transposed(images, run_mode):
    return tf.transpose(images, [0, 3, 1, 2])


@pytest.mark.slow
def test_nchw_is_nhwc_where_there_is_no_gpu(graph):
    x = tf.constant(np.random.default_rng(0).normal(size=(2, 16, 20, 3)).astype("float32"))
    with shared():
        outputs = [
            get_model_fn(NAME, "EVAL", 5, data_format=data_format, preprocess_fn=preprocess_fn)(x)
            for data_format, preprocess_fn in (
                ("NHWC", None),
                ("NCHW", None),
                ("NCHW", transposed),
                ("NHWC", lambda images, run_mode: images),
            )
        ]
        outputs.append(get_model_fn(NAME, "EVAL", 5, data_format="NCHW")(x))
    assert convolution_formats(graph) == {"NHWC"}
    values = run(*(logits for logits, _ in outputs))
    for value in values[1:]:
        np.testing.assert_allclose(value, values[0], rtol=1e-4, atol=1e-6)
    assert np.abs(values[0]).max() > 0


def test_a_function_that_forgot_to_transpose():
    with pytest.raises(ValueError, match=r"resnet_v1_20: with data_format='NCHW' a preprocess_fn returns.*End it with"):
        get_model_fn(NAME, "EVAL", 5, data_format="NCHW", preprocess_fn=lambda images, mode: images)(
            tf.zeros([2, 16, 20, 3])
        )
    with pytest.raises(
        ValueError, match="resnet_v1_20: with data_format='NHWC' a preprocess_fn.*Do not transpose them"
    ):
        get_model_fn(NAME, "EVAL", 5, preprocess_fn=transposed)(tf.zeros([2, 16, 20, 3]))


@pytest.fixture
def pretended_gpu(monkeypatch):
    devices = {"GPU": ["a GPU"]}
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind=None: devices.get(kind, []))


@pytest.mark.slow
@pytest.mark.parametrize("preprocess_fn", [None, transposed])
def test_nchw_on_a_gpu(graph, pretended_gpu, preprocess_fn):
    model = get_model_fn(NAME, "TRAIN", 5, data_format="NCHW", preprocess_fn=preprocess_fn)
    logits, end_points = model(tf.zeros([2, 16, 20, 3]))
    assert logits.shape == [2, 5]
    assert convolution_formats(graph) == {"NCHW"}
    assert end_points["resnet_v1_20/conv1"].shape == [2, 16, 16, 20]
    shapes = {variable.op.name: variable.shape.as_list() for variable in tf.global_variables()}
    with tf.Graph().as_default():
        get_model_fn(NAME, "TRAIN", 5)(tf.zeros([2, 16, 20, 3]))
        assert shapes == {variable.op.name: variable.shape.as_list() for variable in tf.global_variables()}


def test_nhwc_stays_nhwc_on_a_gpu(graph, pretended_gpu):
    get_model_fn(NAME, "TRAIN", 5)(tf.zeros([2, 16, 20, 3]))
    assert convolution_formats(graph) == {"NHWC"}


@pytest.mark.parametrize("preprocess_fn", [None, transposed])
def test_an_exported_model_is_for_a_cpu(graph, pretended_gpu, preprocess_fn):
    model = get_model_fn(NAME, "EXPORT", 5, data_format="NCHW", preprocess_fn=preprocess_fn)
    logits, _ = model(tf.placeholder(tf.float32, [None, 16, 20, 3]))
    assert convolution_formats(graph) == {"NHWC"} and logits.shape.as_list() == [None, 5]


def test_towers_on_the_cpu_beside_a_gpu(graph, pretended_gpu):
    mox.set_flag("clone_on_cpu", True)
    get_model_fn(NAME, "TRAIN", 5, data_format="NCHW")(tf.zeros([2, 16, 20, 3]))
    assert convolution_formats(graph) == {"NHWC"}


@pytest.mark.parametrize("size", [(3, 8), (8, 3)])
def test_too_small_is_found_in_nchw_too(pretended_gpu, size):
    with pytest.raises(ValueError, match=r"lenet was given images of (height|width) 3: its layers need at least 4 x 4"):
        get_model_fn("lenet", "TRAIN", 5, data_format="NCHW")(tf.zeros([2, *size, 1]))

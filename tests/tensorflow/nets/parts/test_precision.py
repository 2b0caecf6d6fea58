"""Half precision: which type computes, which one the script sees, and that nothing is lost on the way."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.nets.nets_factory import get_model_fn
from moxing.tensorflow.nets.parts import precision

NAME = "resnet_v1_20"
HALF = [tf.float16, tf.bfloat16]
IMAGES = np.random.default_rng(2).normal(size=(4, 8, 8, 3)).astype("float32")


@pytest.fixture(autouse=True)
def warnings(monkeypatch):
    """The warnings of a process that has not warned yet."""
    lines = []
    monkeypatch.setattr(tf.logging, "warning", lambda text, *arguments: lines.append(text % arguments))
    precision._warn_once.cache_clear()
    yield lines
    precision._warn_once.cache_clear()


@pytest.fixture
def exact():
    """Half precision as written; the flag is taken back by the fixture that resets all flags."""
    mox.set_flag("exact_fp16", True)


@pytest.fixture
def pretended_gpu(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind=None: ["a GPU"] if kind == "GPU" else [])


def computing_types(graph):
    kinds = ("Conv2D", "MatMul", "FusedBatchNormV3")
    return {operation.get_attr("T") for operation in graph.get_operations() if operation.type in kinds}


def variable_types():
    """The types of the weights and of everything that belongs to batch normalisation."""
    variables = tf.global_variables()
    weights = {variable.dtype.base_dtype for variable in variables if "BatchNorm" not in variable.op.name}
    normalisation = {variable.dtype.base_dtype for variable in variables if "BatchNorm" in variable.op.name}
    return weights, normalisation


def model(dtype, mode="TRAIN", stored=None, name=NAME, **options):
    with mox.var_scope(force_dtype=stored):
        return get_model_fn(name, mode, 5, batch_norm_fused=True, **options)(tf.constant(IMAGES, dtype))


# --- which type computes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("stored", [None, tf.float32])
@pytest.mark.parametrize("mode", ["TRAIN", "EVAL"])
def test_emulated(warnings, dtype, stored, mode):
    with tf.Graph().as_default() as graph:
        logits, end_points = model(dtype, mode, stored, weight_decay=0.1)
        assert computing_types(graph) == {tf.float32}
        assert logits.dtype == dtype
        assert {value.dtype for value in end_points.values()} == {dtype}
        assert variable_types() == ({stored or dtype}, {tf.float32})
        # Added to the loss of a script, which has the type of the logits.
        losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        assert {loss.dtype for loss in losses} == {dtype}
    assert len(warnings) == 1
    assert warnings[0].startswith(
        f"{dtype.name}: there is no GPU to accelerate half precision, so the network computes in"
    )
    assert "--exact_fp16=True" in warnings[0]


def test_one_warning_a_type(warnings):
    for dtype in (tf.float16, tf.float16, tf.bfloat16, tf.float16, tf.bfloat16):
        with tf.Graph().as_default():
            model(dtype, name="lenet")
    assert [line.split(":")[0] for line in warnings] == ["float16", "bfloat16"]


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("stored", [None, tf.float32])
def test_exact(warnings, exact, dtype, stored):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        logits, end_points = model(dtype, stored=stored)
        assert computing_types(graph) == {dtype}
        assert logits.dtype == dtype
        assert {value.dtype for value in end_points.values()} == {dtype}
        assert variable_types() == ({stored or dtype}, {tf.float32})
        session.run(tf.global_variables_initializer())
        session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        assert np.isfinite(session.run(tf.cast(logits, tf.float32))).all()
    assert warnings == []


@pytest.mark.parametrize("dtype", HALF)
def test_a_gpu_computes_as_written(warnings, pretended_gpu, dtype):
    with tf.Graph().as_default() as graph:
        assert model(dtype)[0].dtype == dtype
        assert computing_types(graph) == {dtype}
    assert warnings == []


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("how", ["cpu", "exact", "gpu"])
def test_an_exported_model_computes_in_float32(request, warnings, dtype, how):
    if how != "cpu":
        request.getfixturevalue("exact" if how == "exact" else "pretended_gpu")
    with tf.Graph().as_default() as graph:
        logits, _ = model(dtype, "EXPORT")
        assert computing_types(graph) == {tf.float32}
        assert logits.dtype == dtype
        # What training saved.
        assert variable_types() == ({dtype}, {tf.float32})
    assert warnings == []


def test_float32_is_float32(warnings, pretended_gpu):
    with tf.Graph().as_default() as graph:
        assert model(tf.float32)[0].dtype == tf.float32
        assert computing_types(graph) == {tf.float32}
    assert warnings == []


# --- use_fp16 ---------------------------------------------------------------------------------------------------------


def test_use_fp16_where_nothing_accelerates_it(warnings):
    mox.set_flag("use_fp16", True)
    with tf.Graph().as_default() as graph:
        assert model(tf.float32)[0].dtype == tf.float32
        assert computing_types(graph) == {tf.float32}
    assert len(warnings) == 1 and warnings[0].startswith("--use_fp16: there is no GPU to accelerate half precision")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["exact", "pretended_gpu"])
def test_use_fp16(request, warnings, how):
    request.getfixturevalue(how)
    mox.set_flag("use_fp16", True)
    with tf.Graph().as_default() as graph:
        logits, end_points = model(tf.float32)
        assert computing_types(graph) == {tf.float16}
        assert {value.dtype for value in [logits, *end_points.values()]} == {tf.float32}
        assert variable_types() == ({tf.float32}, {tf.float32})
    with tf.Graph().as_default() as graph:
        model(tf.float32, "EXPORT")
        assert computing_types(graph) == {tf.float32}
    assert warnings == []


def test_decisions(warnings):
    assert precision.computing_dtype(tf.float32) == tf.float32
    assert precision.computing_dtype(tf.float16) == tf.float32
    assert precision.model_dtype() is None and not precision.has_gpu() and not precision.computes_half()
    mox.set_flag("exact_fp16", True)
    assert precision.computes_half() and not precision.has_gpu()
    assert precision.computing_dtype(tf.bfloat16) == tf.bfloat16
    assert precision.computing_dtype(tf.float32) == tf.float32
    mox.set_flag("use_fp16", True)
    assert precision.computing_dtype(tf.float32) == precision.model_dtype() == tf.float16
    # Images that are in half precision already keep their own.
    assert precision.computing_dtype(tf.bfloat16) == tf.bfloat16


def test_a_gpu_that_the_towers_are_not_put_on(pretended_gpu):
    assert precision.has_gpu()
    mox.set_flag("clone_on_cpu", True)
    assert not precision.has_gpu()
    with tf.Graph().as_default() as graph:
        model(tf.float16)
        assert computing_types(graph) == {tf.float32}


# --- numbers ----------------------------------------------------------------------------------------------------------


def assign_same(session):
    """The same weights in every graph, whatever type they are stored in: numbers that both half precisions have."""
    feed, assigned = {}, []
    for variable in tf.global_variables():
        shape = variable.shape.as_list()
        value = np.full(shape, 1.0 if variable.op.name.endswith(("gamma", "variance")) else 0.0)
        if variable.op.name.endswith("weights"):
            generator = np.random.default_rng(list(variable.op.name.encode()))
            value = generator.normal(scale=np.sqrt(2 / np.prod(shape[:-1])), size=shape)
        fed = tf.placeholder(tf.float32, shape)
        feed[fed] = rounded(value, tf.bfloat16)
        assigned.append(variable.assign(tf.cast(fed, variable.dtype.base_dtype)).op)
    # In one call: each with something new in the graph has TensorFlow optimise all of it again.
    session.run(assigned, feed)


def rounded(value, dtype):
    return value.astype(dtype.as_numpy_dtype).astype("float32")


def logits_of(dtype, stored=None, images=IMAGES):
    with tf.Graph().as_default(), tf.Session() as session, mox.var_scope(force_dtype=stored):
        logits, _ = get_model_fn(NAME, "EVAL", 5)(tf.constant(images, dtype))
        assign_same(session)
        return session.run(tf.cast(logits, tf.float32))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("stored", [None, tf.float32])
def test_emulated_logits_are_those_of_float32_rounded_once(dtype, stored):
    images = rounded(IMAGES, dtype)
    expected = logits_of(tf.float32, images=images)
    found = logits_of(dtype, stored, images)
    np.testing.assert_array_equal(found, rounded(found, dtype))
    step = {tf.float16: 2**-11, tf.bfloat16: 2**-8}[dtype]
    np.testing.assert_allclose(found, expected, rtol=1.01 * step, atol=1e-5)
    assert np.abs(found).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("dtype", HALF)
def test_exact_logits_are_near(exact, dtype):
    expected = logits_of(tf.float32)
    found = logits_of(dtype, tf.float32)
    off = np.abs(found - expected).max() / np.abs(expected).max()
    assert 0 < off < {tf.float16: 0.01, tf.bfloat16: 0.1}[dtype]


def gradients(dtype, scale, stored=tf.float32):
    """The gradients of a loss that is scaled by `scale`, scaled back."""
    with tf.Graph().as_default(), tf.Session() as session, mox.var_scope(force_dtype=stored):
        logits, _ = get_model_fn(NAME, "TRAIN", 5, batch_norm_fused=True)(
            tf.constant(rounded(IMAGES, tf.bfloat16), dtype)
        )
        assign_same(session)
        loss = tf.losses.sparse_softmax_cross_entropy([0, 1, 2, 3], tf.cast(logits, tf.float32))
        variables = tf.trainable_variables()
        found = tf.gradients(loss * scale, variables)
        assert [gradient.dtype for gradient in found] == [variable.dtype.base_dtype for variable in variables]
        values = session.run([tf.cast(gradient, tf.float32) / scale for gradient in found])
        return dict(zip((variable.op.name for variable in variables), values, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("how", "bound"), [("emulated", 2e-3), ("exact_fp16", 0.06)])
def test_gradients_of_a_scaled_loss(how, bound):
    if how == "exact_fp16":
        mox.set_flag("exact_fp16", True)
    plain, scaled = gradients(tf.float16, 1.0), gradients(tf.float16, 1024.0)
    assert len(plain) > 50
    for name, value in plain.items():
        size = np.linalg.norm(value)
        assert np.isfinite(scaled[name]).all() and size > 0, name
        assert np.linalg.norm(scaled[name] - value) <= bound * size, name


@pytest.mark.slow
@pytest.mark.parametrize("dtype", HALF)
def test_emulated_gradients_are_those_of_float32(dtype):
    expected, found = gradients(tf.float32, 1.0), gradients(dtype, 1.0)
    # The logits and their gradients are rounded once each, nothing else.
    bound = {tf.float16: 2**-9, tf.bfloat16: 2**-6}[dtype]
    for name, value in expected.items():
        assert np.linalg.norm(found[name] - value) <= bound * np.linalg.norm(value), name


def test_pixels_train_in_float32_whatever_the_flags(exact):
    with tf.Graph().as_default() as graph:
        logits, _ = get_model_fn("lenet", "TRAIN", 5)(tf.zeros([1, 8, 8, 1], tf.uint8))
        assert logits.dtype == tf.float32 and computing_types(graph) == {tf.float32}


def test_a_preprocess_fn_chooses_the_type(exact):
    half = lambda images, run_mode: tf.cast(images, tf.float16) / 255  # noqa: E731
    with tf.Graph().as_default() as graph:
        logits, _ = get_model_fn("lenet", "TRAIN", 5, preprocess_fn=half)(tf.zeros([1, 8, 8, 1], tf.uint8))
        assert logits.dtype == tf.float16 and computing_types(graph) == {tf.float16}

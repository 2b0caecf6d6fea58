"""Half precision by operation: convolutions and products are half, nothing else, forwards and backwards."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.graph.half_precision import half_precision
from moxing.tf1.graph.run_graph import run_graph

RANDOM = np.random.RandomState(0)
IMAGES = RANDOM.rand(2, 6, 6, 3).astype(np.float32)
ROWS = RANDOM.rand(4, 5).astype(np.float32)
VOLUMES = RANDOM.rand(2, 4, 4, 4, 2).astype(np.float32)


def weights(*shape):
    return tf.constant(np.random.RandomState(1).randn(*shape).astype(np.float32) * 0.3)


#: Name of the operation, the input, the weights' shape, and the function of both.
PRODUCTS = {
    "MatMul": (ROWS, (5, 3), tf.matmul),
    "MatMul, transposed": (ROWS, (3, 5), lambda x, w: tf.matmul(x, w, transpose_b=True)),
    "BatchMatMulV2": (IMAGES, (2, 6, 3, 4), tf.matmul),
    "Conv2D": (IMAGES, (3, 3, 3, 4), lambda x, w: tf.nn.conv2d(x, w, 2, "SAME")),
    "Conv2D, explicit padding": (
        IMAGES, (3, 3, 3, 4), lambda x, w: tf.nn.conv2d(x, w, 1, [[0, 0], [1, 2], [0, 1], [0, 0]]),
    ),
    "Conv2DBackpropInput": (
        IMAGES, (3, 3, 4, 3), lambda x, w: tf.nn.conv2d_transpose(x, w, [2, 12, 12, 4], 2, "SAME"),
    ),
    "DepthwiseConv2dNative": (
        IMAGES, (3, 3, 3, 2), lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"),
    ),
    "Conv3D": (VOLUMES, (2, 2, 2, 2, 3), lambda x, w: tf.nn.conv3d(x, w, [1, 1, 1, 1, 1], "SAME")),
    "Conv3DBackpropInputV2": (
        VOLUMES, (2, 2, 2, 3, 2), lambda x, w: tf.nn.conv3d_transpose(x, w, [2, 4, 4, 4, 3], [1, 1, 1, 1, 1]),
    ),
    "Einsum": (ROWS, (5, 3), lambda x, w: tf.einsum("bf,fk->bk", x, w)),
}  # fmt: skip


def types(graph):
    """The types that operations of the graph and of its functions compute in, by their kind."""
    graph_def = graph.as_graph_def()
    found: dict[str, set[tf.DType]] = {}
    for node in [*graph_def.node, *(node for function in graph_def.library.function for node in function.node_def)]:
        if node.attr["T"].type:
            found.setdefault(node.op, set()).add(tf.as_dtype(node.attr["T"].type))
    return found


def computed(dtype, x, shape, function):
    """A function's value, its gradients by both inputs, and the types in the graph before and after the gradients."""
    with run_graph(tf.Graph()) as graph, tf.Session() as session:
        x, w = tf.constant(x), weights(*shape)
        with half_precision(dtype):
            y = function(x, w)
        forwards = types(graph)
        gradients = tf.gradients(tf.reduce_sum(tf.square(y)), [x, w])
        assert {tensor.dtype for tensor in [y, *gradients]} == {tf.float32}
        return session.run([y, *gradients]), y.shape, forwards, types(graph)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, tf.float16) for name in PRODUCTS), ("MatMul", tf.bfloat16), ("Conv2D", tf.bfloat16)],
)
def test_products_and_their_gradients(name, dtype):
    kind = name.partition(",")[0]
    exact, exact_shape, _, _ = computed(None, *PRODUCTS[name])
    half, shape, forwards, everything = computed(dtype, *PRODUCTS[name])
    assert shape == exact_shape
    assert forwards[kind] == {dtype}
    # The sum of squares was made outside, and is float32; its gradient reaches the products as half precision.
    assert everything[kind] == {dtype}
    assert not [op for op in everything if op.startswith("Conv") and everything[op] != {dtype}]
    for one, other in zip(exact, half, strict=True):
        np.testing.assert_allclose(one, other, rtol=0.02 if dtype == tf.float16 else 0.1, atol=np.abs(one).max() * 0.02)
        assert not np.array_equal(one, other)


def test_everything_else_stays():
    with run_graph(tf.Graph()) as graph, half_precision(tf.float16):
        x = tf.constant(IMAGES)
        w = tf.get_variable("w", [3, 3, 3, 4])
        y = tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), tf.get_variable("b", [4]))
        y, _, _ = tf.nn.fused_batch_norm(y, tf.ones([4]), tf.zeros([4]))
        y = tf.reduce_mean(tf.nn.softmax(tf.nn.max_pool2d(tf.nn.relu(y), 2, 2, "SAME")) ** 2)
        double = tf.matmul(tf.ones([2, 2], tf.float64), tf.ones([2, 2], tf.float64))
        whole = tf.matmul(tf.ones([2, 2], tf.int32), tf.ones([2, 2], tf.int32))
        already = tf.matmul(tf.ones([2, 2], tf.float16), tf.ones([2, 2], tf.float16))
        transposed = tf.einsum("ij->ji", tf.ones([2, 3]))
    found = types(graph)
    assert found.pop("Conv2D") == {tf.float16}
    assert found.pop("MatMul") == {tf.float64, tf.int32, tf.float16}
    assert [y.dtype, double.dtype, whole.dtype, already.dtype] == [tf.float32, tf.float64, tf.int32, tf.float16]
    assert transposed.dtype == tf.float32
    assert w.dtype.base_dtype == tf.float32
    assert not [op for op, dtypes in found.items() if tf.float16 in dtypes and op not in ("Const", "Fill", "Identity")]


def test_names_and_shapes_are_those_of_float32():
    def build(dtype):
        with run_graph(tf.Graph()) as graph, half_precision(dtype):
            with tf.name_scope("layer"):
                y = tf.matmul(tf.placeholder(tf.float32, [None, 5]), tf.zeros([5, 3]), name="product")
            tf.matmul(y, tf.zeros([3, 2]))
            return y.shape.as_list(), [op.name for op in graph.get_operations() if op.type == "MatMul"]

    assert build(tf.float16) == build(None) == ([None, 3], ["layer/product", "MatMul"])


def loop(x, w):
    return tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, x])[1]


def both_branches(x, w):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(x, w), lambda: -tf.matmul(x, w))


def traced(x, w):
    return tf.function(lambda x: tf.matmul(x, w))(x)


def mapped(x, w):
    return tf.map_fn(lambda row: tf.matmul(row[None], w)[0], x)


def scanned(x, w):
    return tf.scan(lambda state, row: tf.tanh(tf.matmul(state[None] + row[None], w)[0]), x, tf.zeros([5]))


@pytest.mark.parametrize("function", [loop, both_branches, traced, mapped, scanned])
def test_inside_functions(function):
    exact, _, before, _ = computed(None, ROWS, (5, 5), function)
    half, _, forwards, everything = computed(tf.float16, ROWS, (5, 5), function)
    assert before["MatMul"] == {tf.float32}
    assert forwards["MatMul"] == everything["MatMul"] == {tf.float16}
    for one, other in zip(exact, half, strict=True):
        np.testing.assert_allclose(one, other, rtol=0.02, atol=0.02)


def test_gradients_inside_the_model():
    """As a gradient penalty has them."""
    with run_graph(tf.Graph()) as graph, tf.Session() as session, half_precision(tf.float16):
        x, w = tf.constant(ROWS), weights(5, 3)
        gradient = tf.gradients(tf.square(tf.matmul(x, w)), x)[0]
        penalty = tf.gradients(tf.reduce_sum(tf.square(gradient)), w)[0]
        assert types(graph)["MatMul"] == {tf.float16}
        half = session.run([gradient, penalty])
    with run_graph(tf.Graph()), tf.Session() as session:
        x, w = tf.constant(ROWS), weights(5, 3)
        gradient = tf.gradients(tf.square(tf.matmul(x, w)), x)[0]
        exact = session.run([gradient, tf.gradients(tf.reduce_sum(tf.square(gradient)), w)[0]])
    for one, other in zip(exact, half, strict=True):
        np.testing.assert_allclose(one, other, rtol=0.02, atol=0.05)


def test_what_a_tape_watches_stays_float32():
    with run_graph(tf.Graph()) as graph, tf.Session() as session, half_precision(tf.float16):
        x, w = tf.constant(ROWS), weights(5, 3)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.matmul(x, w)
        assert types(graph)["MatMul"] == {tf.float32}
        np.testing.assert_allclose(
            session.run(tape.gradient(y, x)), session.run(w).sum(1) + np.zeros([4, 5]), rtol=1e-3
        )
        tf.matmul(x, w)
        assert tf.float16 in types(graph)["MatMul"]


def test_outside_and_after_an_error_nothing_is_changed():
    create = tf.Graph._create_op_internal

    def product():
        with tf.Graph().as_default():
            return tf.matmul(tf.ones([2, 2]), tf.ones([2, 2])).op.type

    with half_precision(None):
        assert tf.Graph._create_op_internal is create
        assert product() == "MatMul"
    with half_precision(tf.float16):
        assert product() == "Cast"
    assert tf.Graph._create_op_internal is create
    with pytest.raises(ZeroDivisionError), half_precision(tf.float16):
        raise ZeroDivisionError
    assert tf.Graph._create_op_internal is create
    unequal = pytest.raises(ValueError, match="Dimensions must be equal")
    with half_precision(tf.float16), unequal, tf.Graph().as_default():
        tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]))
    assert product() == "MatMul"


def test_one_inside_another():
    with run_graph(tf.Graph()) as graph, half_precision(tf.float16):
        a = tf.ones([2, 2])
        with half_precision(tf.bfloat16):
            tf.matmul(a, a, name="inner")
        with pytest.raises(KeyError), half_precision(tf.bfloat16):
            raise KeyError
        with half_precision(None):
            tf.matmul(a, a, name="still")
        tf.matmul(a, a, name="outer")
    found = {op.name: op.get_attr("T") for op in graph.get_operations() if op.type == "MatMul"}
    assert found == {"inner": tf.bfloat16, "still": tf.float16, "outer": tf.float16}


def test_control_dependencies_hold():
    """The product waits for what it must wait for, and what waits for it waits for its cast."""
    with run_graph(tf.Graph()), tf.Session() as session, half_precision(tf.float16):
        count = tf.get_variable("count", initializer=0.0)
        with tf.control_dependencies([count.assign_add(1.0)]):
            y = tf.matmul(tf.ones([1, 2]), tf.ones([2, 1]))
        with tf.control_dependencies([y]):
            after = count.read_value()
        session.run(tf.global_variables_initializer())
        assert session.run([y, after]) == [[[2.0]], 1.0]

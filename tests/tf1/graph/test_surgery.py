"""Subgraphs that are cut out of a graph and rebuilt in a function."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.graph.run_graph import run_graph
from moxing.tf1.graph.surgery import CannotRebuild, Subgraph, ancestors, has_fixed_seed, read_before_write


@pytest.fixture
def graph():
    with run_graph(tf.Graph()) as graph:
        yield graph


def first_element(dataset):
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        return session.run(element)


def test_ancestors_stop_at_named_operations(graph):
    a = tf.constant(1, name="a")
    b = tf.negative(a, name="b")
    with tf.control_dependencies([tf.no_op(name="before")]):
        c = tf.negative(b, name="c")
    assert set(ancestors([c])) == {"a", "b", "before", "c"}
    assert set(ancestors([c.op], stop=["b"])) == {"before", "c"}


def test_a_subgraph_becomes_a_map(graph):
    element = tf.placeholder(tf.float32, [2], name="element")
    doubled = element * 2.0
    subgraph = Subgraph([doubled, element], inputs=[element])
    assert list(subgraph.boundary) == ["element:0"]
    dataset = tf.data.Dataset.from_tensors([1.0, 2.0]).map(lambda x: tuple(subgraph.build({"element:0": x})))
    first, second = first_element(dataset)
    np.testing.assert_array_equal(first, [2.0, 4.0])
    np.testing.assert_array_equal(second, [1.0, 2.0])


def test_conditionals_and_large_constants_are_part_of_it(graph):
    element = tf.placeholder(tf.float32, [], name="element")
    table = tf.constant(np.arange(100_000, dtype=np.float32))
    chosen = tf.cond(element > 0.5, lambda: table[70_000], lambda: tf.constant(-1.0))
    subgraph = Subgraph([chosen], inputs=[element])
    results = []

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def rebuilt(x):
        return subgraph.build({"element:0": x})[0]

    with tf.Session() as session:
        results = session.run([rebuilt(tf.constant(1.0)), rebuilt(tf.constant(0.0))])
    assert results == [70_000.0, -1.0]


def test_forbidden_operations_and_reference_variables_are_named(graph):
    total = tf.add(1.0, 2.0, name="total")
    with pytest.raises(CannotRebuild, match=r"total \(Add\w*\): no sums"):
        Subgraph([total], forbidden={"Add": "no sums"})
    old = tf.raw_ops.VariableV2(shape=[], dtype=tf.float32, name="old")
    with pytest.raises(CannotRebuild, match=r"old \(VariableV2\) is a reference variable"):
        Subgraph([tf.identity(old)])


@pytest.mark.parametrize(("seed", "expected"), [(3, True), (None, False)])
def test_seeded_random_operations_are_noticed(graph, seed, expected):
    noise = tf.random_uniform([2], seed=seed)
    assert Subgraph([noise + 1.0]).draws_seeded_numbers() is expected
    assert any(has_fixed_seed(op.node_def) for op in ancestors([noise]).values()) is expected


def test_reads_come_before_a_write_unless_they_wait_for_it(graph):
    step = tf.get_variable("step", initializer=0, use_resource=True)
    with tf.control_dependencies([update := step.assign(step + 1).op]):
        after = tf.identity(step.read_value())
    # It takes its time: without an order it would see the new value.
    late = tf.constant(0)
    for _ in range(300):
        late = tf.reduce_sum(tf.ones([50, 50], tf.int32)) * 0 + late
    with tf.control_dependencies([late]):
        before = tf.identity(step.read_value())
    read_before_write([update, before, after], step)
    read_before_write([update, before, after], tf.get_variable("old", [], use_resource=False))
    with tf.Session() as session:
        session.run(step.initializer)
        assert [session.run([before, after]) for _ in range(3)] == [[0, 1], [1, 2], [2, 3]]

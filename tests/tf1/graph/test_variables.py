"""Names, shapes and initial values of variables in checkpoints."""

import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.graph.run_graph import run_graph
from moxing.tf1.graph.variables import initialize_like, saved_name, saved_shape, share_saved_name


@pytest.fixture
def graph():
    with run_graph(tf.Graph()) as graph:
        yield graph


def test_slices_share_the_name_and_shape_of_the_whole(graph):
    partitioned = tf.get_variable("w", [4, 3], partitioner=tf.fixed_size_partitioner(2))
    assert [(saved_name(part), saved_shape(part)) for part in partitioned] == [("w", [4, 3])] * 2


def test_a_copy_is_saved_under_the_name_of_its_variable(graph, tmp_path):
    variable, copied = tf.get_variable("w", [2]), tf.get_variable("w/copy", initializer=[1.0, 2.0])
    share_saved_name(copied, variable)
    assert (saved_name(copied), saved_shape(copied)) == ("w", [2])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver([copied]).save(session, str(tmp_path / "model.ckpt"))
    assert tf.train.load_variable(path, "w").tolist() == [1.0, 2.0]


def test_a_variable_gets_the_slice_of_its_copy(graph):
    copies = list(tf.get_variable("w", [4], partitioner=tf.fixed_size_partitioner(2)))
    variable = tf.get_variable("other", [2])
    share_saved_name(copies[1], variable)
    assert (saved_name(variable), saved_shape(variable)) == ("w", [4])


def test_initialize_like(graph):
    one, two = tf.get_variable("one", initializer=1.0), tf.get_variable("two", initializer=2.0)
    initialize_like(one, two)
    with tf.Session() as session:
        session.run(one.initializer)
        assert session.run(one) == 2.0

"""The graph in the files of an Estimator: without the data, with the whole model."""

from __future__ import annotations

import numpy as np
import tensorflow.compat.v1 as tf
from google.protobuf import text_format

from moxing.tf1.estimator.graph_files import lean_graph_def, write_lean_graph

DATA = np.random.RandomState(0).rand(3000, 100).astype(np.float32)


def build():
    """A model with a large table, on large data; returns its step and its output."""
    data = tf.data.Dataset.from_tensor_slices(tf.cast(tf.constant(DATA, name="data") * 2.0, tf.float64)).repeat()
    features = tf.cast(tf.data.make_one_shot_iterator(data.batch(4)).get_next(), tf.float32)
    features = tf.placeholder_with_default(features, [None, 100], name="features")
    table = tf.constant(DATA, name="table")
    weights = tf.get_variable("w", [100, 2])
    output = tf.identity(tf.matmul(features + tf.gather(table, [3]), weights), name="output")
    step = tf.train.get_or_create_global_step()
    return tf.group(step.assign_add(1), weights.assign_add(tf.ones([100, 2]))), output


def session_with(hook, **arguments):
    return tf.train.MonitoredTrainingSession(
        chief_only_hooks=[hook], save_summaries_steps=None, log_step_count_steps=None, **arguments
    )


def test_only_the_constants_of_the_data_are_placeholders():
    with tf.Graph().as_default() as graph:
        build()
        tf.constant(DATA, name="nobody")
    # A one-shot iterator has a copy in its function, which this does not look into.
    kinds = {node.name: node.op for node in lean_graph_def(graph).node}
    assert (kinds["table"], kinds["nobody"]) == ("Const", "Const")
    with tf.Graph().as_default() as graph:
        data = tf.data.Dataset.from_tensor_slices(tf.constant(DATA, name="data") * 2.0)
        tf.data.make_initializable_iterator(data).get_next()
        captured = tf.constant(DATA, name="captured")
        tf.data.Dataset.range(10).map(lambda number: tf.gather(captured, number))
    lean = lean_graph_def(graph)
    kinds = {node.name: node.op for node in lean.node}
    assert (kinds["data"], kinds["captured"]) == ("Placeholder", "Placeholder")
    assert lean.ByteSize() < 20_000
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(lean, name="")
        assert graph.get_tensor_by_name("data:0").shape.as_list() == [3000, 100]


def test_the_files_of_tensorflow_without_the_data(tmp_path):
    with tf.Graph().as_default():
        data = tf.data.Dataset.from_tensor_slices(tf.constant(DATA, name="data")).repeat().batch(4)
        iterator = tf.data.make_initializable_iterator(data)
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        features = tf.placeholder_with_default(iterator.get_next(), [None, 100], name="features")
        weights = tf.get_variable("w", [100, 2])
        tf.matmul(features, weights, name="output")
        step = tf.train.get_or_create_global_step()
        train = tf.group(step.assign_add(1), weights.assign_add(tf.ones([100, 2])))
        hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=2, scaffold=(scaffold := tf.train.Scaffold()))
        write_lean_graph(hook)
        with session_with(hook, scaffold=scaffold) as session:
            for _ in range(3):
                session.run(train)
    names = {path.name for path in tmp_path.iterdir() if "tfevents" not in path.name}
    parts = [f"model.ckpt-{n}.{part}" for n in (0, 2, 3) for part in ("meta", "index", "data-00000-of-00001")]
    assert names == {"checkpoint", "graph.pbtxt", *parts}
    assert max(path.stat().st_size for path in tmp_path.iterdir()) < DATA.nbytes / 4
    graph_def = text_format.Parse((tmp_path / "graph.pbtxt").read_text(), tf.GraphDef())
    (events,) = tmp_path.glob("events*")
    event_graphs = [event for event in tf.train.summary_iterator(str(events)) if event.graph_def]
    assert tf.GraphDef.FromString(event_graphs[0].graph_def) == graph_def
    assert [event.meta_graph_def for event in tf.train.summary_iterator(str(events)) if event.meta_graph_def]
    # As tools of TensorFlow 1 do.
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(str(tmp_path / "model.ckpt-3.meta"))
        saver.restore(session, str(tmp_path / "model.ckpt-3"))
        output = session.run("output:0", {"features:0": DATA[:2]})
    saved = tf.train.load_variable(str(tmp_path), "w")
    np.testing.assert_allclose(output, DATA[:2] @ saved, rtol=1e-5)


def test_without_a_graph_there_is_only_the_event(tmp_path):
    with tf.Graph().as_default():
        train, _ = build()
        scaffold = tf.train.Scaffold()
        hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=9, scaffold=scaffold, save_graph_def=False)
        write_lean_graph(hook)
        with session_with(hook, scaffold=scaffold) as session:
            session.run(train)
    assert not [path for path in tmp_path.iterdir() if path.suffix in (".meta", ".pbtxt")]
    assert (tmp_path / "model.ckpt-1.index").exists()


def test_a_hook_that_saves_in_its_own_way_stays(tmp_path):
    class Own(tf.train.CheckpointSaverHook):
        def _save(self, session, step):
            return super()._save(session, step)

    hook = Own(str(tmp_path), save_steps=9)
    before = dict(vars(hook))
    write_lean_graph(hook)
    assert vars(hook) == before

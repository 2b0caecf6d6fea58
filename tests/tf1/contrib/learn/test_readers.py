"""Batches of examples from files, and run_n."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1.contrib.learn import readers


def write(path, values):
    with tf.python_io.TFRecordWriter(str(path)) as writer:
        for value in values:
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"n": feature})).SerializeToString())


def test_features_of_record_files(tmp_path):
    write(tmp_path / "a.tfrecord", [1, 2])
    write(tmp_path / "b.tfrecord", [3])
    spec = {"n": tf.FixedLenFeature([], tf.int64)}
    with tf.Graph().as_default():
        pattern = str(tmp_path / "*.tfrecord")
        ordered = readers.read_batch_record_features(pattern, 3, spec, randomize_input=False, num_epochs=2)
        mixed = readers.read_batch_record_features([pattern], 3, spec, num_epochs=1, queue_capacity=10)
        found = readers.run_n({"ordered": ordered["n"], "mixed": mixed["n"]})
    assert found[0]["ordered"].tolist() == [1, 2, 3] and sorted(found[0]["mixed"]) == [1, 2, 3]
    with pytest.raises(ValueError, match="no files match"):
        readers.read_batch_examples(str(tmp_path / "no*"), 1, tf.TFRecordReader)
    with pytest.raises(ValueError, match="batch_size=9 must be between 1 and queue_capacity=4"):
        readers.read_batch_examples(pattern, 9, tf.TFRecordReader, queue_capacity=4)


def test_run_n_restores_a_checkpoint(tmp_path):
    with tf.Graph().as_default():
        v = tf.Variable(1.0, name="v")
        with tf.Session() as session:
            path = tf.train.Saver().save(session, str(tmp_path / "m")) if session.run(v.initializer) is None else ""
        assert readers.run_n({"v": v + 1}, restore_checkpoint_path=path, n=2) == [{"v": np.float32(2)}] * 2

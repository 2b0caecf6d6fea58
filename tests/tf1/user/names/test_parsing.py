"""Parsing examples in user modules."""

import tensorflow.compat.v1 as tf

from moxing.tf1.user import facade


def test_a_placeholder_without_a_shape_is_a_batch():
    feature = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0]))
    record = tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString()
    keys = {"x": tf.FixedLenFeature([2], tf.float32)}
    for parse in (facade.module("tensorflow").parse_example, facade.module("tensorflow.io").parse_example):
        with tf.Graph().as_default(), tf.Session() as session:
            serialized = tf.placeholder(tf.string)
            parsed = parse(serialized, keys)["x"]
            assert parsed.shape.as_list() == [None, 2]
            assert session.run(parsed, {serialized: [record] * 3}).tolist() == [[1.0, 2.0]] * 3
            assert parse(tf.constant(record), keys)["x"].shape.as_list() == [2]

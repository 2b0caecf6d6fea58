# -*- coding: utf-8 -*-
"""Writes the photos below one directory per class as TFRecords. Not published.

    python generate_tfrecord.py --images_dir flowers --output_dir records
"""

import os
import random

import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string('images_dir', None, 'One directory of JPEG files per class.')
flags.DEFINE_string('output_dir', None, 'For train.record, val.record and labels.txt.')
flags.DEFINE_integer('num_val', 10, 'Images per class for validation.')
flags.DEFINE_integer('num_train', 0, 'Images per class for training; 0: all others.')
FLAGS = flags.FLAGS


def _int64_feature(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def _bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def create_tf_example(path, label):
    with tf.gfile.GFile(path, 'rb') as fid:
        encoded = fid.read()
    return tf.train.Example(features=tf.train.Features(feature={
        'image/encoded': _bytes_feature(encoded),
        'image/format': _bytes_feature('jpeg'.encode('utf8')),
        'image/class/label': _int64_feature(label)}))


def write(path, samples):
    writer = tf.python_io.TFRecordWriter(path)
    for image_path, label in samples:
        writer.write(create_tf_example(image_path, label).SerializeToString())
    writer.close()
    print('%s: %d images' % (path, len(samples)))


def main(_):
    tf.gfile.MakeDirs(FLAGS.output_dir)
    classes = sorted(name.rstrip('/') for name in tf.gfile.ListDirectory(FLAGS.images_dir)
                     if tf.gfile.IsDirectory(os.path.join(FLAGS.images_dir, name)))
    train, val = [], []
    for label, name in enumerate(classes):
        paths = sorted(tf.gfile.Glob(os.path.join(FLAGS.images_dir, name, '*.jpg')))
        samples = [(path, label) for path in paths]
        val.extend(samples[:FLAGS.num_val])
        rest = samples[FLAGS.num_val:]
        train.extend(rest[:FLAGS.num_train] if FLAGS.num_train else rest)
    random.seed(0)
    random.shuffle(train)
    write(os.path.join(FLAGS.output_dir, 'train.record'), train)
    write(os.path.join(FLAGS.output_dir, 'val.record'), val)
    with tf.gfile.GFile(os.path.join(FLAGS.output_dir, 'labels.txt'), 'w') as fid:
        fid.write('\n'.join(classes))


if __name__ == '__main__':
    tf.app.run()

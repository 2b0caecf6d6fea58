# -*- coding: utf-8 -*-
"""Classifies photos with an exported model. Not published.

    python predict.py --export_dir model/export/servo --images a.jpg,b.jpg
"""

import os

import tensorflow as tf

import generate_tfrecord

flags = tf.app.flags
flags.DEFINE_string('export_dir', None, 'The directory of a FinalExporter.')
flags.DEFINE_string('images', None, 'JPEG files, separated by commas.')
FLAGS = flags.FLAGS


def main(_):
    newest = sorted(name.rstrip('/') for name in tf.gfile.ListDirectory(FLAGS.export_dir))[-1]
    predict_fn = tf.contrib.predictor.from_saved_model(os.path.join(FLAGS.export_dir, newest))
    for path in FLAGS.images.split(','):
        example = generate_tfrecord.create_tf_example(path, 0)
        outputs = predict_fn({'serialized_example': example.SerializeToString()})
        print('%s: class %d, probability %.6f' % (
            os.path.basename(path), outputs['classes'][0], outputs['probabilities'][0].max()))


if __name__ == '__main__':
    tf.app.run()

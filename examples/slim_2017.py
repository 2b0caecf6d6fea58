"""A TensorFlow 1 script in the style of 2017: tf.flags, tf.contrib.slim, a session loop. It does not use mox.run.

Shows that such a script runs unchanged on TensorFlow 2: `moxing run` gives it the TensorFlow 1 API, including
`tf.contrib`, and the names of Python 2 and older NumPy that it uses (`xrange`, `np.float`).

Run it:

    moxing run examples/slim_2017.py --train_dir=slim_log

`moxing run -v examples/slim_2017.py` also prints which removed names of Python and NumPy the script uses (`xrange`,
`np.float`), and what replaces them.
"""

from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import os

import numpy as np
import tensorflow as tf
from tensorflow.contrib import slim

FLAGS = tf.app.flags.FLAGS

tf.app.flags.DEFINE_string('train_dir', 'slim_log', 'Directory for the checkpoint and the event file.')
tf.app.flags.DEFINE_integer('max_steps', 100, 'Number of batches to run.')
tf.app.flags.DEFINE_integer('batch_size', 32, 'Images per batch.')
tf.app.flags.DEFINE_float('learning_rate', 0.01, 'Initial learning rate.')


def make_digits(count):
    """Bars in one of four positions, with noise: images [count, 16, 16, 1] and labels [count]."""
    random = np.random.RandomState(0)
    labels = random.randint(0, 4, size=count)
    images = random.normal(scale=0.3, size=[count, 16, 16, 1]).astype(np.float)
    for i in xrange(count):
        images[i, :, 4 * labels[i]:4 * labels[i] + 4] += 1.0
    return images.astype(np.float32), labels


def inference(images, is_training):
    with slim.arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(0.0005)):
        net = slim.conv2d(images, 8, [3, 3], scope='conv1')
        net = slim.max_pool2d(net, [2, 2], scope='pool1')
        net = slim.flatten(net, scope='flatten')
        net = slim.dropout(net, 0.8, is_training=is_training, scope='dropout')
        return slim.fully_connected(net, 4, activation_fn=None, scope='logits')


def train():
    images, labels = make_digits(512)
    global_step = tf.train.get_or_create_global_step()
    image_batch = tf.placeholder(tf.float32, [None, 16, 16, 1], name='images')
    label_batch = tf.placeholder(tf.int64, [None], name='labels')

    logits = inference(image_batch, is_training=True)
    tf.losses.sparse_softmax_cross_entropy(labels=label_batch, logits=logits)
    total_loss = tf.losses.get_total_loss()
    tf.summary.scalar('total_loss', total_loss)

    learning_rate = tf.train.exponential_decay(FLAGS.learning_rate, global_step, 50, 0.5, staircase=True)
    optimizer = tf.train.AdamOptimizer(learning_rate)
    train_op = slim.learning.create_train_op(total_loss, optimizer, global_step=global_step)
    summary_op = tf.summary.merge_all()
    saver = tf.train.Saver(tf.global_variables())

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        writer = tf.summary.FileWriter(FLAGS.train_dir, sess.graph)
        for step in xrange(FLAGS.max_steps):
            rows = np.random.randint(0, len(images), size=FLAGS.batch_size)
            feed = {image_batch: images[rows], label_batch: labels[rows]}
            loss_value = sess.run(train_op, feed_dict=feed)
            assert not np.isnan(loss_value), 'Model diverged with loss = NaN'
            if step % 20 == 0 or (step + 1) == FLAGS.max_steps:
                print('step %d, loss = %.3f' % (step, loss_value))
                writer.add_summary(sess.run(summary_op, feed_dict=feed), step)
        path = saver.save(sess, os.path.join(FLAGS.train_dir, 'model.ckpt'), global_step=global_step)
        writer.close()
        print('saved %s' % path)


def main(argv=None):
    if tf.gfile.Exists(FLAGS.train_dir):
        tf.gfile.DeleteRecursively(FLAGS.train_dir)
    tf.gfile.MakeDirs(FLAGS.train_dir)
    train()


if __name__ == '__main__':
    tf.app.run()

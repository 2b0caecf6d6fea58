"""An Estimator with one dense layer, for checkpoints of other versions.

    python train_dense.py MODEL_DIR STEPS

It runs unchanged on TensorFlow 2.15 and, with `moxing run`, here.
"""

import sys

import numpy as np
import tensorflow.compat.v1 as tf


def input_fn():
    random = np.random.RandomState(0)
    x = random.rand(96, 4).astype(np.float32)
    y = (x.sum(1) > 2).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices((x, y)).shuffle(96, seed=3).repeat().batch(8)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(features, 2)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


if __name__ == "__main__":
    model_dir, steps = sys.argv[1:]
    tf.disable_v2_behavior()
    config = tf.estimator.RunConfig(model_dir=model_dir, tf_random_seed=5, save_summary_steps=None)
    tf.estimator.Estimator(model_fn, config=config).train(input_fn, max_steps=int(steps))

"""Handwritten digits with MoXing, in the style of 2018. Run it with `moxing run digits.py`.

It trains a small convolutional network, evaluates it on held-out digits, and exports it. The 1,797 digits are part of
scikit-learn. Feel free to copy this file.
"""

# mypy: allow-untyped-defs

import json
import os
import sys

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import moxing.tensorflow as mox

tf.flags.DEFINE_string("train_url", "digits_log", "Directory for checkpoints, summaries and the exported model")
tf.flags.DEFINE_integer("batch_size", 32, "Samples per step")
tf.flags.DEFINE_integer("max_steps", 1200, "Training steps")
flags = tf.flags.FLAGS

digits = load_digits()
# Hold out every fifth digit, stratified by class, always the same ones.
train_images, test_images, train_labels, test_labels = train_test_split(
    digits.images.astype(np.float32), digits.target, test_size=0.2, stratify=digits.target, random_state=0
)


def input_fn(mode, **kwargs):
    if mode == mox.ModeKeys.TRAIN:
        dataset = tf.data.Dataset.from_tensor_slices((train_images, train_labels)).shuffle(2000).repeat()
        image, label = dataset.make_one_shot_iterator().get_next()
        # Augmentation: shift by up to one pixel.
        image = tf.random_crop(tf.pad(image, [[1, 1], [1, 1]]), [8, 8])
    else:
        dataset = tf.data.Dataset.from_tensor_slices((test_images, test_labels))
        image, label = dataset.make_one_shot_iterator().get_next()
    return image, label


def model_fn(inputs, mode, **kwargs):
    images, labels = inputs
    training = mode == mox.ModeKeys.TRAIN
    net = tf.expand_dims(images / 16.0, axis=-1)
    net = tf.layers.conv2d(net, 32, 3, padding="same", activation=tf.nn.relu)
    net = tf.layers.conv2d(net, 64, 3, padding="same", activation=tf.nn.relu)
    net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.layers.dense(tf.layers.flatten(net), 128, activation=tf.nn.relu)
    net = tf.layers.dropout(net, rate=0.5, training=training)
    logits = tf.layers.dense(net, 10)
    predicted = tf.argmax(logits, axis=1)

    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(predicted, labels), tf.float32))
    return mox.ModelSpec(
        loss=loss,
        log_info={"loss": loss, "accuracy": accuracy},
        export_spec=mox.ExportSpec(
            inputs_dict={"images": images},
            outputs_dict={"digit": predicted, "probability": tf.reduce_max(tf.nn.softmax(logits), axis=1)},
        ),
    )


def main(_):
    tf.set_random_seed(2018)
    mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        optimizer_fn=mox.get_optimizer_fn("adam", learning_rate=0.001),
        run_mode=mox.ModeKeys.TRAIN,
        batch_size=flags.batch_size,
        log_dir=flags.train_url,
        max_number_of_steps=flags.max_steps,
        log_every_n_steps=100,
    )
    result = mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        run_mode=mox.ModeKeys.EVAL,
        batch_size=flags.batch_size,
        log_dir=flags.train_url,
        max_number_of_steps=sys.maxsize,  # to the end of the data
        export_model=mox.ExportKeys.TF_SERVING,
    )
    np.savez(os.path.join(flags.train_url, "held_out.npz"), images=test_images, labels=test_labels)
    with tf.gfile.Open(os.path.join(flags.train_url, "result.json"), "w") as f:
        json.dump({**result.log_info, "samples": result.samples, "export_path": result.export_path}, f)


if __name__ == "__main__":
    tf.app.run()

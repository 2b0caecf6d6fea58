"""One process of a job that learns scikit-learn's digits. Its last line is RESULT and the accuracy on unseen ones."""

from __future__ import annotations

import json

import moxing.tensorflow as mox

# isort: split
import numpy as np
import tensorflow.compat.v1 as tf
from sklearn.datasets import load_digits

BATCH, EPOCHS = 16, 40


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(images))
    images, labels = (images[order] / 16).astype(np.float32), labels[order].astype(np.int64)
    seen = 1437

    def input_fn(mode):
        training = mode == mox.ModeKeys.TRAIN
        part = slice(None, seen) if training else slice(seen, None)
        dataset = tf.data.Dataset.from_tensor_slices((images[part], labels[part]))
        dataset = dataset.shuffle(seen, seed=1).repeat(EPOCHS) if training else dataset
        return tf.data.make_one_shot_iterator(dataset).get_next()

    def model_fn(inputs, mode):
        image, label = inputs
        hidden = tf.layers.dense(image, 256, tf.nn.relu, kernel_initializer=tf.glorot_uniform_initializer(seed=1))
        logits = tf.layers.dense(hidden, 10, kernel_initializer=tf.glorot_uniform_initializer(seed=2))
        loss = tf.losses.sparse_softmax_cross_entropy(label, logits)
        right = tf.cast(tf.equal(tf.argmax(logits, 1), label), tf.float32)
        return mox.ModelSpec(loss=loss, log_info={"accuracy": tf.reduce_mean(right)})

    mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        optimizer_fn=mox.get_optimizer_fn("momentum", learning_rate=0.05, momentum=0.9),
        run_mode=mox.ModeKeys.TRAIN,
        batch_size=BATCH,
        log_dir="log",
        max_number_of_steps=10**9,
    )
    result = mox.run(
        input_fn=input_fn,
        model_fn=model_fn,
        run_mode=mox.ModeKeys.EVAL,
        batch_size=BATCH,
        checkpoint_path="log",
        max_number_of_steps=10**9,
    )
    # The chief evaluates alone.
    print("RESULT", json.dumps({name: float(value) for name, value in (result.log_info or {}).items()}))


if __name__ == "__main__":
    main()

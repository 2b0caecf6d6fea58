"""`tf.distribute.MultiWorkerMirroredStrategy`, ring: ten steps of a custom training loop in one `tf.function`.

In trials, one step per call and `fit` with ten steps per execution were slower.
"""

from __future__ import annotations

import math
import os

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf
import tf_keras
from common import CLASSES, DENSE, LEARNING_RATE, MULTIPLIER, SIDE, TOGETHER, measure, task


def model_of(name: str) -> tuple[tf_keras.Model, tuple[int, ...]]:
    """Return the model and the shape of a sample."""
    if name == "mobilenet_v1_025":
        shape: tuple[int, ...] = (SIDE, SIDE, 3)
        return tf_keras.applications.MobileNet(
            shape, alpha=MULTIPLIER, weights=None, classes=CLASSES, classifier_activation=None
        ), shape
    layers = [tf_keras.layers.Dense(depth, activation="relu") for depth in DENSE[1:-1]]
    return tf_keras.Sequential([tf_keras.Input(DENSE[:1]), *layers, tf_keras.layers.Dense(CLASSES)]), DENSE[:1]


def main() -> None:
    wanted = task()
    threads = int(os.environ["OMP_NUM_THREADS"])
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    # As large as MoXing's packs. The default, all gradients in one pack, was slower in trials.
    options = tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=8 << 20, implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    with strategy.scope():
        model, shape = model_of(wanted.model)
        optimizer = tf_keras.optimizers.SGD(LEARNING_RATE)
    samples = tf.random.uniform([wanted.batch, *shape], -1, 1)
    labels = tf.random.uniform([wanted.batch], 0, CLASSES, tf.int32)

    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            logits = model(samples, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
            # Gradients are summed over the workers; the other programs apply the mean.
            part = loss / strategy.num_replicas_in_sync
        variables = model.trainable_variables
        gradients = tape.gradient(part, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    @tf.function
    def steps_together() -> tf.Tensor:
        loss = strategy.run(step)
        for _ in tf.range(TOGETHER - 1):
            loss = strategy.run(step)
        return loss

    def run_steps(steps: int) -> float:
        for _ in range(steps // TOGETHER):
            loss = steps_together()
        return float(loss)

    measure(run_steps, wanted, sum(math.prod(weight.shape) for weight in model.trainable_weights))


if __name__ == "__main__":
    main()

"""`tf_keras.applications`: `fit` over one repeated batch; inference with a `tf.function`."""

from __future__ import annotations

import math
import os

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

import tensorflow as tf
import tf_keras
from common import CLASSES, LEARNING_RATE, MOMENTUM, SIZES, arguments, report
from tf_keras.layers import Conv2D, Dense, DepthwiseConv2D

APPLICATIONS = {
    "resnet_v1_50": tf_keras.applications.ResNet50,
    "mobilenet_v2": tf_keras.applications.MobileNetV2,
    "inception_v3": tf_keras.applications.InceptionV3,
}


def multiply_adds(net: tf_keras.Model) -> int:
    """Return the number of multiply-adds for one image."""
    total = 0
    for layer in net.layers:
        if isinstance(layer, DepthwiseConv2D):
            per_output = math.prod(layer.depthwise_kernel.shape[:2])
        elif isinstance(layer, Conv2D | Dense):
            per_output = math.prod(layer.kernel.shape[:-1])
        else:
            continue
        total += per_output * math.prod(layer.output_shape[1:])
    return total


def main() -> None:
    (name, what), options = arguments()
    batch, size = options["batch"], SIZES[name]
    tf.config.threading.set_inter_op_parallelism_threads(options["threads"])
    tf.config.threading.set_intra_op_parallelism_threads(options["threads"])
    images = tf.random.uniform([batch, size, size, 3], -1, 1)
    labels = tf.random.uniform([batch], 0, CLASSES, tf.int32)
    net = APPLICATIONS[name](weights=None, input_shape=(size, size, 3), classes=CLASSES, classifier_activation=None)
    net.compile(tf_keras.optimizers.SGD(LEARNING_RATE, MOMENTUM), tf_keras.losses.SparseCategoricalCrossentropy(True))
    data = tf.data.Dataset.from_tensors((images, labels)).repeat()
    # Slightly faster than `predict_on_batch`, which adds overhead.
    predict = tf.function(lambda given: net(given, training=False))

    def train_steps(steps: int) -> float:
        return net.fit(data, steps_per_epoch=steps, verbose=0).history["loss"][-1]

    def inference_steps(steps: int) -> float:
        for _ in range(steps):
            logits = predict(images).numpy()
        return float(logits.sum())

    parameters = sum(math.prod(weight.shape) for weight in net.trainable_weights)
    run_steps = train_steps if what == "train" else inference_steps
    report(run_steps, batch, options["steps"], parameters, multiply_adds(net))


if __name__ == "__main__":
    main()

"""Time to build the forward graph of a zoo network in training mode."""

# moxing sets switches that TensorFlow reads when it is imported, so it comes first.
# isort: skip_file

from __future__ import annotations

import time

import moxing.tensorflow as mox
import tensorflow.compat.v1 as tf
from common import CLASSES, arguments


def main() -> None:
    (name,), options = arguments()
    tf.enable_resource_variables()
    size = mox.get_model_meta(name).default_image_size
    with tf.Graph().as_default() as graph:
        images = tf.placeholder(tf.float32, [options["batch"], size, size, 3])
        started = time.perf_counter()
        mox.get_model_fn(name, mox.ModeKeys.TRAIN, CLASSES, batch_norm_fused=True)(images)
        seconds = time.perf_counter() - started
        print(f"@{seconds} {len(graph.get_operations())}", flush=True)


if __name__ == "__main__":
    main()

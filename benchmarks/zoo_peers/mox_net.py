"""A network of the zoo in a plain session, with the session settings of `mox.run`."""

# moxing sets switches that TensorFlow reads when it is imported, so it comes first.
# isort: skip_file

from __future__ import annotations

import math

import moxing.tensorflow as mox
import tensorflow.compat.v1 as tf
from moxing.tensorflow.executor.loop.session import session_config
from common import CLASSES, LEARNING_RATE, MOMENTUM, SIZES, arguments, report


def multiply_adds(operations: list[tf.Operation], batch: int) -> int:
    """Return the number of multiply-adds for one image, counted in the graph."""
    total = 0
    for operation in operations:
        if operation.type in ("Conv2D", "DepthwiseConv2dNative", "MatMul"):
            *kernel, _ = operation.inputs[1].shape.as_list()
            per_output = math.prod(kernel[:2] if operation.type == "DepthwiseConv2dNative" else kernel)
            total += per_output * operation.outputs[0].shape.num_elements() // batch
    return total


def main() -> None:
    (name, what), options = arguments()
    batch, size = options["batch"], SIZES[name]
    mox.set_flag("num_inter_threads", options["threads"])
    mox.set_flag("num_intra_threads", options["threads"])
    tf.enable_resource_variables()
    # No program has the auxiliary head of Inception: Keras' network does not, and the loss would not use it.
    without_head = {"create_aux_logits": False} if name == "inception_v3" else {}
    with tf.Graph().as_default() as graph:
        # Variables, not constants, so that nothing can be constant-folded.
        images = tf.Variable(tf.random.uniform([batch, size, size, 3], -1, 1), trainable=False)
        labels = tf.Variable(tf.random.uniform([batch], 0, CLASSES, tf.int32), trainable=False)
        mode = mox.ModeKeys.TRAIN if what == "train" else mox.ModeKeys.EVAL
        model_fn = mox.get_model_fn(name, mode, CLASSES, batch_norm_fused=True, **without_head)
        logits, _ = model_fn(images.read_value())
        work = multiply_adds(graph.get_operations(), batch)
        parameters = sum(variable.shape.num_elements() for variable in tf.trainable_variables())
        if what == "train":
            value = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
            minimize = tf.train.MomentumOptimizer(LEARNING_RATE, MOMENTUM).minimize(value)
            step = tf.group(minimize, *tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        else:
            value, step = tf.reduce_sum(logits), logits
        with tf.Session(config=session_config()) as session:
            session.run(tf.global_variables_initializer())

            def run_steps(steps: int) -> float:
                for _ in range(steps):
                    _, result = session.run([step, value])
                return float(result)

            report(run_steps, batch, options["steps"], parameters, work)


if __name__ == "__main__":
    main()

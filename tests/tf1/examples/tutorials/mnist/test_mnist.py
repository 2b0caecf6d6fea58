"""The network of the tutorial."""

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tf1.examples.tutorials import mnist as package


def test_the_network_learns_and_is_evaluated():
    mnist = package.mnist
    images = np.random.RandomState(0).rand(20, mnist.IMAGE_PIXELS).astype(np.float32)
    labels = np.arange(20, dtype=np.int32) % mnist.NUM_CLASSES
    with tf.Graph().as_default(), tf.Session() as session:
        logits = mnist.inference(tf.constant(images), 32, 16)
        loss = mnist.loss(logits, labels)
        step = mnist.training(loss, 0.1)
        right = mnist.evaluation(logits, labels)
        session.run(tf.global_variables_initializer())
        values = session.run(logits)
        shifted = values - values.max(1, keepdims=True)
        entropy = np.log(np.exp(shifted).sum(1)) - shifted[np.arange(20), labels]
        np.testing.assert_allclose(session.run(loss), entropy.mean(), rtol=1e-4)
        assert session.run(right) == (values.argmax(1) == labels).sum()
        before = session.run(loss)
        for _ in range(20):
            session.run(step)
        assert session.run(loss) < before
        names = [one.op.name for one in tf.global_variables()]
        assert "hidden1/weights" in names and "softmax_linear/biases" in names and "global_step" in names

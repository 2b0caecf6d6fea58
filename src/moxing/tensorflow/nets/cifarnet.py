"""CifarNet: after the CIFAR-10 network of Krizhevsky's cuda-convnet, as TF-Slim has it."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.lenet import flat
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.network_registry import Network


def cifarnet(net: Layers, images: tf.Tensor, num_classes: int | None, *, dropout_keep_prob: float = 0.5) -> tf.Tensor:
    """CifarNet; see `Architecture`. Only the weights of fc3 and fc4 decay.

    Args:
      net: the layers.
      images: the images. The shape of fc3's weights follows from their size.
      num_classes: number of classes; None for features.
      dropout_keep_prob: share of the features that training keeps between fc3 and fc4.
    """
    biases = tf.constant_initializer(0.1)
    net = net.styled(initializer=tf.truncated_normal_initializer(stddev=0.04))
    steady = net.styled(initializer=tf.truncated_normal_initializer(stddev=0.05), decay=False)
    with net.scope("CifarNet"):
        x = net.end_point("conv1", steady.conv(images, 64, 5, scope="conv1"))
        x = net.end_point("pool1", net.max_pool(x, 2))
        x = locally_normalised(net, x)
        x = net.end_point("conv2", steady.conv(x, 64, 5, scope="conv2"))
        x = locally_normalised(net, x)
        x = net.end_point("pool2", net.max_pool(x, 2))
        x = net.end_point("Flatten", flat("cifarnet", net, x))
        x = net.end_point("fc3", net.styled(biases_initializer=biases).dense(x, 384, scope="fc3"))
        x = net.dropout(x, dropout_keep_prob)
        x = net.end_point("fc4", net.styled(biases_initializer=biases).dense(x, 192, scope="fc4"))
        if num_classes is None:
            return x
        small = tf.truncated_normal_initializer(stddev=1 / 192)
        x = steady.styled(activation=None, initializer=small).dense(x, num_classes, scope="logits")
        net.end_point("Predictions", tf.nn.softmax(x))
        return net.end_point("Logits", x)


def locally_normalised(net: Layers, x: tf.Tensor) -> tf.Tensor:
    """Local response normalisation: every value is divided by a norm of the 9 channels around it."""
    y = tf.nn.lrn(net.channels_last(x), depth_radius=4, bias=1.0, alpha=0.001 / 9, beta=0.75)
    # The kernel supports only NHWC.
    return tf.transpose(y, [0, 3, 1, 2]) if net.data_format == "NCHW" else y


NETWORKS: dict[str, Network] = {
    "cifarnet": Network(
        cifarnet, scope="CifarNet", image_size=32, logits_pattern="logits", preprocessing="cifarnet", smallest=4
    ),
}

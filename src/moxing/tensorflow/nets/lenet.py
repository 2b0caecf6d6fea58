"""LeNet: after LeCun et al., "Gradient-based learning applied to document recognition" (1998), as TF-Slim has it."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.network_registry import Network


def lenet(net: Layers, images: tf.Tensor, num_classes: int | None, *, dropout_keep_prob: float = 0.5) -> tf.Tensor:
    """LeNet; see `Architecture`.

    Args:
      net: the layers.
      images: the images. The shape of fc3's weights follows from their size.
      num_classes: number of classes; None for features.
      dropout_keep_prob: probability of keeping a feature before the logits, in training.
    """
    net = net.styled(initializer=tf.truncated_normal_initializer(stddev=0.1))
    with net.scope("LeNet"):
        x = net.end_point("conv1", net.conv(images, 32, 5, scope="conv1"))
        x = net.end_point("pool1", net.max_pool(x, 2))
        x = net.end_point("conv2", net.conv(x, 64, 5, scope="conv2"))
        x = net.end_point("pool2", net.max_pool(x, 2))
        x = net.end_point("Flatten", flat("lenet", net, x))
        x = net.end_point("fc3", net.dense(x, 1024, scope="fc3"))
        if num_classes is None:
            return x
        x = net.end_point("dropout3", net.dropout(x, dropout_keep_prob))
        x = net.end_point("Logits", net.styled(activation=None).dense(x, num_classes, scope="fc4"))
        net.end_point("Predictions", tf.nn.softmax(x))
        return x


def flat(name: str, net: Layers, x: tf.Tensor) -> tf.Tensor:
    """Reshapes to [batch, features], for a layer with a weight for every position.

    Raises:
      ValueError: height or width is unknown.
    """
    if None in net.size(x):
        raise ValueError(
            f"{name} was given images whose height or width is not known: its layer fc3 has a weight for every "
            "position. Pass image_height and image_width to get_model_fn, or call images.set_shape."
        )
    return net.flatten(x)


NETWORKS: dict[str, Network] = {
    "lenet": Network(
        lenet, scope="LeNet", image_size=28, logits_pattern="fc4", preprocessing="lenet", smallest=4, channels=1
    ),
}

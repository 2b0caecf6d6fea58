"""AlexNet v2: Krizhevsky, "One weird trick for parallelizing convolutional neural networks" (2014), as TF-Slim has it.

Without the paper's local response normalisation. For larger images see `vgg`.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.nets.vgg import classified
from moxing.tensorflow.network_registry import Network


def alexnet_v2(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    global_pool: bool | None = None,
) -> tf.Tensor:
    """AlexNet v2; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: number of classes; None for features.
      dropout_keep_prob: see `classified`.
      spatial_squeeze: see `classified`.
      global_pool: see `classified`.
    """
    net = net.styled(initializer=tf.glorot_uniform_initializer(), collect=True)
    biases = tf.constant_initializer(0.1)
    with net.scope("alexnet_v2"):
        positive = net.styled(biases_initializer=biases)
        x = positive.styled(padding="VALID").conv(images, 64, 11, stride=4, scope="conv1")
        x = net.max_pool(x, 3, scope="pool1")
        x = positive.conv(x, 192, 5, scope="conv2")
        x = net.max_pool(x, 3, scope="pool2")
        x = positive.conv(x, 384, 3, scope="conv3")
        x = positive.conv(x, 384, 3, scope="conv4")
        x = positive.conv(x, 256, 3, scope="conv5")
        x = net.max_pool(x, 3, scope="pool5")
        return classified(
            net.styled(initializer=tf.truncated_normal_initializer(stddev=0.005)), x, num_classes, fc6=(4096, 5),
            dropout_keep_prob=dropout_keep_prob, spatial_squeeze=spatial_squeeze, global_pool=global_pool,
            biases_initializer=biases,
        )  # fmt: skip


NETWORKS: dict[str, Network] = {
    "alexnet_v2": Network(
        alexnet_v2, scope="alexnet_v2", image_size=224, logits_pattern="fc8", labels_offset=1, smallest=195
    ),
}

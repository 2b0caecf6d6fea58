"""OverFeat: Sermanet et al., "OverFeat: integrated recognition, localization and detection" (2013), as TF-Slim has it.

The paper's fast model. For larger images see `vgg`.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.nets.vgg import classified
from moxing.tensorflow.network_registry import Network


def overfeat(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    global_pool: bool | None = None,
) -> tf.Tensor:
    """OverFeat; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: number of classes; None for features.
      dropout_keep_prob: see `classified`.
      spatial_squeeze: see `classified`.
      global_pool: see `classified`.
    """
    net = net.styled(initializer=tf.glorot_uniform_initializer(), collect=True)
    with net.scope("overfeat"):
        x = net.styled(padding="VALID").conv(images, 64, 11, stride=4, scope="conv1")
        x = net.max_pool(x, 2, scope="pool1")
        x = net.styled(padding="VALID").conv(x, 256, 5, scope="conv2")
        x = net.max_pool(x, 2, scope="pool2")
        x = net.conv(x, 512, 3, scope="conv3")
        x = net.conv(x, 1024, 3, scope="conv4")
        x = net.conv(x, 1024, 3, scope="conv5")
        x = net.max_pool(x, 2, scope="pool5")
        return classified(
            net.styled(initializer=tf.truncated_normal_initializer(stddev=0.005)), x, num_classes, fc6=(3072, 6),
            dropout_keep_prob=dropout_keep_prob, spatial_squeeze=spatial_squeeze, global_pool=global_pool,
            biases_initializer=tf.constant_initializer(0.1),
        )  # fmt: skip


NETWORKS: dict[str, Network] = {
    "overfeat": Network(
        overfeat, scope="overfeat", image_size=231, logits_pattern="fc8", labels_offset=1, smallest=231
    ),
}

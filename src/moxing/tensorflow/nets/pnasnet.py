"""PNASNet-5: Liu et al., "Progressive neural architecture search" (2017), as TF-Slim published it.

The frame of NASNet with another cell. There is one kind of cell only: where the image is halved it has a stride.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.nasnet import (
    IMAGENET_BATCH_NORM,
    auxiliary_head,
    check_options,
    classified,
    imagenet_stem,
    reduction_places,
    styled,
)
from moxing.tensorflow.nets.nasnet_cells import (
    CURRENT,
    IDENTITY,
    MAX_POOL_3X3,
    PREVIOUS,
    SEPARABLE_3X3,
    SEPARABLE_5X5,
    SEPARABLE_7X7,
    Cell,
    DropPath,
)
from moxing.tensorflow.nets.parts.layers import Layers
from moxing.tensorflow.network_registry import Network

CELL = Cell(
    combinations=(
        ((PREVIOUS, SEPARABLE_5X5), (PREVIOUS, MAX_POOL_3X3)),
        ((CURRENT, SEPARABLE_7X7), (CURRENT, MAX_POOL_3X3)),
        ((CURRENT, SEPARABLE_5X5), (CURRENT, SEPARABLE_3X3)),
        ((4, SEPARABLE_3X3), (CURRENT, MAX_POOL_3X3)),
        ((PREVIOUS, SEPARABLE_3X3), (CURRENT, IDENTITY)),
    ),
    outputs=(2, 3, 4, 5, 6),
)
STEM_CELLS = 2


def pnasnet(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    num_cells: int = 9,
    num_conv_filters: int = 54,
    stem_multiplier: float = 1.0,
    drop_path_keep_prob: float = 1.0,
    total_training_steps: int | None = 250_000,
    dense_dropout_keep_prob: float = 0.5,
    use_aux_head: bool = True,
) -> tf.Tensor:
    """A PNASNet-5; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: number of classes; None for features.
      num_cells: number of cells behind the two of the stem, at least 3.
      num_conv_filters: depth of the hidden states in the first of these, at least 4.
      stem_multiplier: the depth of the first convolution, in 32.
      drop_path_keep_prob: see `DropPath`.
      total_training_steps: see `DropPath`.
      dense_dropout_keep_prob: share of the features that the last layer sees in training.
      use_aux_head: see `auxiliary_head`.

    Example:
      >>> with tf.Graph().as_default():
      ...     net = Layers(training=False)
      ...     logits = pnasnet(net, tf.zeros([1, 32, 32, 3]), 10, num_cells=3, num_conv_filters=4)
      ...     print(logits.shape, net.end_points['Cell_2'].shape)
      (1, 10) (1, 1, 1, 80)
    """
    check_options(
        num_cells,
        num_conv_filters,
        stem_multiplier,
        drop_path_keep_prob,
        total_training_steps,
        dense_dropout_keep_prob,
    )
    net = styled(net, IMAGENET_BATCH_NORM)
    reductions = reduction_places(num_cells)
    drop_path = DropPath(drop_path_keep_prob, total_training_steps, num_cells + STEM_CELLS)
    stack = imagenet_stem(net, images, CELL, int(32 * stem_multiplier), num_conv_filters, drop_path)
    net.end_point("Stem", stack.top)

    depth = num_conv_filters
    for number in range(num_cells):
        stride = 2 if number in reductions else 1
        depth *= stride
        x = net.end_point(f"Cell_{number}", stack.add(CELL, depth, scope=f"cell_{number}", stride=stride))
        if use_aux_head and number == reductions[1] - 1:
            auxiliary_head(net, x, num_classes, scope=f"aux_{number}")
    return classified(net, stack.top, num_classes, dense_dropout_keep_prob)


def _network(image_size: int, **options: Any) -> Network:
    return Network(
        partial(pnasnet, **options),
        scope="",
        image_size=image_size,
        logits_pattern=r"\bFC/",
        smallest=3,
        preprocessing="inception",
    )


NETWORKS: dict[str, Network] = {
    "pnasnet_mobile": _network(224),
    "pnasnet_large": _network(331, num_cells=12, num_conv_filters=216, stem_multiplier=3.0, drop_path_keep_prob=0.6),
}

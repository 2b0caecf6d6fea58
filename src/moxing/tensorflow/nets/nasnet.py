"""NASNet-A: Zoph et al., "Learning transferable architectures for scalable image recognition" (2017), as in TF-Slim.

Normal cells, and between their thirds a reduction cell that halves the image and doubles the depth. For ImageNet two
reduction cells more stand in front, in half and a quarter of the depth.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.nasnet_cells import (
    AVG_POOL_3X3,
    CURRENT,
    IDENTITY,
    MAX_POOL_3X3,
    PREVIOUS,
    SEPARABLE_3X3,
    SEPARABLE_5X5,
    SEPARABLE_7X7,
    Cell,
    CellStack,
    DropPath,
    normalised_conv,
)
from moxing.tensorflow.nets.parts.batch_norm import BatchNorm
from moxing.tensorflow.nets.parts.layers import Layers, check_keep_prob
from moxing.tensorflow.network_registry import Network

NORMAL = Cell(
    combinations=(
        ((CURRENT, SEPARABLE_5X5), (PREVIOUS, SEPARABLE_3X3)),
        ((PREVIOUS, SEPARABLE_5X5), (PREVIOUS, SEPARABLE_3X3)),
        ((CURRENT, AVG_POOL_3X3), (PREVIOUS, IDENTITY)),
        ((PREVIOUS, AVG_POOL_3X3), (PREVIOUS, AVG_POOL_3X3)),
        ((CURRENT, SEPARABLE_3X3), (CURRENT, IDENTITY)),
    ),
    outputs=(PREVIOUS, 2, 3, 4, 5, 6),
)
REDUCTION = Cell(
    combinations=(
        ((CURRENT, SEPARABLE_5X5), (PREVIOUS, SEPARABLE_7X7)),
        ((CURRENT, MAX_POOL_3X3), (PREVIOUS, SEPARABLE_7X7)),
        ((CURRENT, AVG_POOL_3X3), (PREVIOUS, SEPARABLE_5X5)),
        ((3, IDENTITY), (2, AVG_POOL_3X3)),
        ((2, SEPARABLE_3X3), (CURRENT, MAX_POOL_3X3)),
    ),
    outputs=(3, 4, 5, 6),
)

CIFAR_BATCH_NORM = BatchNorm(decay=0.9, epsilon=1e-5)
IMAGENET_BATCH_NORM = BatchNorm(decay=0.9997, epsilon=1e-3)
INITIALIZER = tf.variance_scaling_initializer(2.0, "fan_out", "truncated_normal")


def nasnet(
    net: Layers,
    images: tf.Tensor,
    num_classes: int | None,
    *,
    imagenet: bool = True,
    num_cells: int = 12,
    num_conv_filters: int = 44,
    stem_multiplier: float = 1.0,
    skip_reduction_layer_input: bool = False,
    drop_path_keep_prob: float = 1.0,
    total_training_steps: int | None = 250_000,
    dense_dropout_keep_prob: float = 0.5,
    use_aux_head: bool = True,
) -> tf.Tensor:
    """A NASNet-A; see `Architecture`.

    Args:
      net: the layers.
      images: the images.
      num_classes: number of classes; None for features.
      imagenet: begin with a strided convolution and two reduction cells, else with a convolution only.
      num_cells: number of normal cells, at least 3.
      num_conv_filters: depth of the hidden states in the first normal cell, at least 4.
      stem_multiplier: the depth of the first convolution, in 32 with `imagenet`, in `num_conv_filters` without.
      skip_reduction_layer_input: the normal cell behind a reduction cell does not see what the reduction cell saw, but
        what lies one further down.
      drop_path_keep_prob: see `DropPath`.
      total_training_steps: see `DropPath`.
      dense_dropout_keep_prob: share of the features that the last layer sees in training.
      use_aux_head: see `auxiliary_head`.

    Example:
      >>> with tf.Graph().as_default():
      ...     net = Layers(training=False)
      ...     logits = nasnet(net, tf.zeros([1, 32, 32, 3]), 10, num_cells=3, num_conv_filters=4)
      ...     print(logits.shape, net.end_points['Cell_2'].shape)
      (1, 10) (1, 1, 1, 96)
    """
    check_options(
        num_cells,
        num_conv_filters,
        stem_multiplier,
        drop_path_keep_prob,
        total_training_steps,
        dense_dropout_keep_prob,
    )
    net = styled(net, IMAGENET_BATCH_NORM if imagenet else CIFAR_BATCH_NORM)
    reductions = reduction_places(num_cells)
    drop_path = DropPath(
        drop_path_keep_prob, total_training_steps, num_cells + len(reductions) + (2 if imagenet else 0)
    )
    if imagenet:
        stack = imagenet_stem(net, images, REDUCTION, int(32 * stem_multiplier), num_conv_filters, drop_path)
    else:
        x = normalised_conv(
            net, images, int(num_conv_filters * stem_multiplier), 3, scopes=("l1_stem_3x3", "l1_stem_bn")
        )
        stack = CellStack(net, x, drop_path)
    net.end_point("Stem", stack.top)

    depth = num_conv_filters
    for number in range(num_cells):
        # Before a reduction cell is added, this is the output below that cell's input.
        skipped = stack.below_top if skip_reduction_layer_input else None
        if number in reductions:
            depth, index = depth * 2, reductions.index(number)
            x = stack.add(REDUCTION, depth, scope=f"reduction_cell_{index}", stride=2)
            net.end_point(f"Reduction_Cell_{index}", x)
        x = net.end_point(f"Cell_{number}", stack.add(NORMAL, depth, scope=f"cell_{number}", previous=skipped))
        if use_aux_head and number == reductions[1] - 1:
            auxiliary_head(net, x, num_classes, scope=f"aux_{number}")
    return classified(net, stack.top, num_classes, dense_dropout_keep_prob)


def styled(net: Layers, batch_norm: BatchNorm) -> Layers:
    """Returns the layers with the style of NASNet and PNASNet: the activation comes before a layer."""
    return net.styled(batch_norm=batch_norm, activation=None, initializer=INITIALIZER, decay_depthwise=True)


def reduction_places(num_cells: int) -> tuple[int, int]:
    """Returns the numbers of the cells at which the resolution is halved, which divide the cells into thirds.

    Example:
      >>> reduction_places(18)
      (6, 12)
    """
    return num_cells // 3, 2 * num_cells // 3


def imagenet_stem(
    net: Layers, images: tf.Tensor, cell: Cell, depth: int, num_conv_filters: int, drop_path: DropPath
) -> CellStack:
    """A strided convolution of that depth and two strided cells: an eighth of height and width."""
    x = normalised_conv(net.styled(padding="VALID"), images, depth, 3, stride=2, scopes=("conv0", "conv0_bn"))
    stack = CellStack(net, x, drop_path)
    for number, divisor in enumerate((4, 2)):
        stack.add(cell, num_conv_filters // divisor, scope=f"cell_stem_{number}", stride=2)
    return stack


def auxiliary_head(net: Layers, x: tf.Tensor, num_classes: int | None, scope: str) -> None:
    """Logits from the second third of the cells, for a second loss: the end point `AuxLogits`, in training only.

    Its second convolution covers what pooling leaves of the image, and so has weights by the size of the image. Where
    the size is unknown everything is pooled.
    """
    if num_classes is None or not net.training:
        return
    with net.scope(scope), net.scope("aux_logits"):
        x = tf.nn.relu(x)
        height, width = net.size(x)
        if height is None or width is None:
            x = net.global_pool(x)
        else:
            x = net.avg_pool(x, (min(5, height), min(5, width)), stride=3)
        x = tf.nn.relu(normalised_conv(net, x, 128, 1, scopes=("proj", "aux_bn0")))
        x = tf.nn.relu(normalised_conv(net.styled(padding="VALID"), x, 768, net.size(x), scopes=("Conv", "aux_bn1")))
        net.end_point("AuxLogits", net.dense(net.squeeze(x), num_classes, scope="FC"))


def classified(net: Layers, x: tf.Tensor, num_classes: int | None, dense_dropout_keep_prob: float) -> tf.Tensor:
    """The last layers: pooling, logits, predictions."""
    with net.scope("final_layer"):
        x = net.end_point("global_pool", net.global_pool(tf.nn.relu(x), keep=False))
        if num_classes is None:
            return x
        x = net.end_point("Logits", net.dense(net.dropout(x, dense_dropout_keep_prob), num_classes, scope="FC"))
        net.end_point("Predictions", tf.nn.softmax(x))
        return x


def check_options(
    num_cells: int,
    num_conv_filters: int,
    stem_multiplier: float,
    drop_path_keep_prob: float,
    total_training_steps: int | None,
    dense_dropout_keep_prob: float,
) -> None:
    """Raises a ValueError for an invalid option."""
    if num_cells < 3:
        raise ValueError(
            f"num_cells={num_cells!r}: expected at least 3, one before, between and behind the reductions."
        )
    if num_conv_filters < 4:
        raise ValueError(f"num_conv_filters={num_conv_filters!r}: expected at least 4; the stem has a quarter of them.")
    if stem_multiplier * 4 < 1:
        raise ValueError(f"stem_multiplier={stem_multiplier!r}: expected at least 0.25.")
    check_keep_prob("drop_path_keep_prob", drop_path_keep_prob)
    check_keep_prob("dense_dropout_keep_prob", dense_dropout_keep_prob)
    if total_training_steps is not None and total_training_steps < 1:
        raise ValueError(f"total_training_steps={total_training_steps!r}: expected at least 1, or None.")


def _network(image_size: int, preprocessing: str = "inception", smallest: int = 3, **options: Any) -> Network:
    return Network(
        partial(nasnet, **options),
        scope="",
        image_size=image_size,
        logits_pattern=r"\bFC/",
        smallest=smallest,
        preprocessing=preprocessing,
    )


NETWORKS: dict[str, Network] = {
    "nasnet_cifar": _network(
        32,
        preprocessing="cifarnet",
        smallest=1,
        imagenet=False,
        num_cells=18,
        num_conv_filters=32,
        stem_multiplier=3.0,
        drop_path_keep_prob=0.6,
        total_training_steps=937_500,
        dense_dropout_keep_prob=1.0,
    ),
    "nasnet_mobile": _network(224),
    "nasnet_large": _network(
        331,
        num_cells=18,
        num_conv_filters=168,
        stem_multiplier=3.0,
        skip_reduction_layer_input=True,
        drop_path_keep_prob=0.7,
    ),
}

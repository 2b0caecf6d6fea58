"""What the zoo knows of a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import tensorflow.compat.v1 as tf

from moxing.tensorflow.nets.layers import Layers


class Architecture(Protocol):
    """A network as its file writes it.

    It is given the layers, images in the layers' data format, and the number of classes, where None asks for features
    instead of logits. It returns the logits, or the features, and leaves its end points in the layers. Its options
    are its keyword arguments.
    """

    def __call__(self, net: Layers, images: tf.Tensor, num_classes: int | None, **options: Any) -> tf.Tensor: ...


@dataclass(frozen=True)
class Network:
    """One line of the zoo.

    Attributes:
      architecture: builds it.
      scope: the scope of its variables, the prefix in a checkpoint; empty where it has none.
      image_size: height and width of the images that it was published with.
      logits_pattern: a regular expression for the variables that depend on the number of classes.
      labels_offset: 1 where the published weights know 1,000 classes, 0 where they know a background class as well.
      smallest: least height and width of an image.
      channels: number of channels of the images that it was published with; it takes any.
    """

    architecture: Callable[..., tf.Tensor]
    scope: str
    image_size: int
    logits_pattern: str
    labels_offset: int = 0
    smallest: int = 1
    channels: int = 3

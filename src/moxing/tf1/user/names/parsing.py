"""`tf.parse_example` for user modules: a placeholder without a shape is a batch, as in TensorFlow 1."""

from __future__ import annotations

import functools
from typing import Any

from moxing.tf1 import environment

__all__ = ["parse_example"]

tf = environment.import_tensorflow()


@functools.wraps(tf.compat.v1.parse_example)
def parse_example(serialized: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns the features of serialized examples.

    TensorFlow 2 also takes a single example, so it knows no shape of the results if that of `serialized` is unknown.
    """
    if isinstance(serialized, tf.Tensor) and serialized.shape.rank is None:
        serialized = tf.ensure_shape(serialized, [None])
    return tf.compat.v1.parse_example(serialized, *args, **kwargs)

"""Losses of `tf.nn` for user modules: without names, their arguments have the order of TensorFlow 0.x."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from moxing.tf1 import environment

tf = environment.import_tensorflow().compat.v1

__all__ = [
    "sigmoid_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
]


def _logits_first(original: Callable[..., Any]) -> Callable[..., Any]:
    """TensorFlow 0.x took `(logits, labels)`, TensorFlow 1 names only, TensorFlow 2 `(labels, logits)`."""

    @functools.wraps(original)
    def loss(*args: Any, **kwargs: Any) -> Any:
        if len(args) > 2:
            raise TypeError(
                f"{original.__name__} takes logits and labels, and other arguments by name; got {len(args)}"
            )
        return original(**dict(zip(("logits", "labels"), args, strict=False)), **kwargs)

    return loss


sigmoid_cross_entropy_with_logits = _logits_first(tf.nn.sigmoid_cross_entropy_with_logits)
softmax_cross_entropy_with_logits = _logits_first(tf.nn.softmax_cross_entropy_with_logits)
sparse_softmax_cross_entropy_with_logits = _logits_first(tf.nn.sparse_softmax_cross_entropy_with_logits)

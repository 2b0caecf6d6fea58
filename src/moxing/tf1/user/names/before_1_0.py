"""Names and argument orders of TensorFlow 0.x that TensorFlow 1.0 dropped, for user modules."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from moxing.tf1 import environment
from moxing.tf1.era.module_view import note_once

tf = environment.import_tensorflow().compat.v1

#: Old names of functions, and the names of the same functions today.
RENAMED = {
    "audio_summary": "summary.audio",
    "batch_matmul": "matmul",
    "complex_abs": "abs",
    "histogram_summary": "summary.histogram",
    "image_summary": "summary.image",
    "inv": "reciprocal",
    "merge_all_summaries": "summary.merge_all",
    "merge_summary": "summary.merge",
    "mul": "multiply",
    "neg": "negative",
    "pack": "stack",
    "scalar_summary": "summary.scalar",
    "select": "where",
    "sub": "subtract",
    "unpack": "unstack",
}


def _renamed(old: str, new: str) -> Callable[..., Any]:
    target: Any = tf
    for part in new.split("."):
        target = getattr(target, part)

    @functools.wraps(target)
    def call(*args: Any, **kwargs: Any) -> Any:
        note_once(f"tf.{old}", f"tf.{new}")
        return target(*args, **kwargs)

    return call


@functools.wraps(tf.concat)
def concat(values: Any, axis: Any = None, name: str = "concat", **old: Any) -> Any:
    """`tf.concat`, also in the order of TensorFlow 0.x: `tf.concat(axis, values)`."""
    if "concat_dim" in old:
        # `values` is a keyword too, or the first argument that is left.
        axis = old.pop("concat_dim")
    elif isinstance(values, int) and isinstance(axis, list | tuple):
        note_once("tf.concat(axis, values)", "tf.concat(values, axis)")
        values, axis = axis, values
    return tf.concat(values, axis, name, **old)


@functools.wraps(tf.split)
def split(value: Any, num_or_size_splits: Any = None, axis: Any = 0, *args: Any, **kwargs: Any) -> Any:
    """`tf.split`, also in the order of TensorFlow 0.x: `tf.split(axis, number, value)`."""
    is_old = type(value) is int and type(num_or_size_splits) is int and tf.is_tensor(axis)
    if is_old:
        note_once("tf.split(axis, number, value)", "tf.split(value, number, axis)")
        value, axis = axis, value
    return tf.split(value, num_or_size_splits, axis, *args, **kwargs)


for _old, _new in RENAMED.items():
    globals()[_old] = _renamed(_old, _new)

__all__ = ["concat", "split", *RENAMED]

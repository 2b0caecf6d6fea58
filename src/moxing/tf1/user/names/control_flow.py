"""`tf.cond` for user modules: its branches may differ in structure, as in TensorFlow 1."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from moxing.tf1 import environment

__all__ = ["cond"]

tf = environment.import_tensorflow().compat.v1


@functools.wraps(tf.cond)
def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """Returns what `true_fn` returns if `pred` is true, and otherwise what `false_fn` returns.

    TensorFlow 1 compared the tensors of the two branches, not the lists and tuples around them. The control flow of
    today compares both, so the branches return flat tuples to it if they differ.
    """
    first, second = true_fn or fn1, false_fn or fn2
    if not (callable(first) and callable(second)) or tf.executing_eagerly():
        return tf.cond(pred, true_fn, false_fn, strict, name, fn1, fn2)
    seen: list[Any] = []

    def flat(branch: Callable[[], Any]) -> Callable[[], Any]:
        def call() -> Any:
            result = branch()
            seen.append(result)
            return result if _has_none(result) else tuple(tf.nest.flatten(result))

        return call

    result = tf.cond(pred, flat(first), flat(second), True, name)
    if not seen or _has_none(seen[0]) or not isinstance(result, tuple):
        return result
    shape = seen[0]
    if not strict and isinstance(shape, list | tuple) and len(shape) == 1:
        return result[0] if not tf.nest.is_nested(shape[0]) else tf.nest.pack_sequence_as(shape[0], result)
    return tf.nest.pack_sequence_as(shape, result)


def _has_none(result: Any) -> bool:
    """Returns True if a branch returns operations or nothing, which have no value."""
    return any(part is None or isinstance(part, tf.Operation) for part in tf.nest.flatten(result))

"""The shape of what `input_fn` returns: one tensor, a list, a dict, an `InputSpec`, nested or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.specs import InputSpec

#: What may stand in an input: dense and sparse tensors.
Leaf: TypeAlias = tf.Tensor | tf.SparseTensor


class InputStructure:
    """Knows how `input_fn` arranged its tensors and arranges others likewise for `model_fn`.

    Example:
      >>> with tf.Graph().as_default():
      ...     structure = InputStructure(tf.constant(1, name='a'))
      ...     [tensor.name for tensor in structure.arrange(structure.leaves)]
      ['a:0']
    """

    def __init__(self, returned: Any) -> None:
        self._input_spec = returned if isinstance(returned, InputSpec) else None
        self._pattern = self._top_level(returned)
        self.leaves: list[Leaf] = [_require_tensor(leaf, path) for path, leaf in _flatten(self._pattern)]
        if not self.leaves:
            raise ValueError(f"input_fn returned {returned!r}: expected at least one tensor.")

    @staticmethod
    def _top_level(returned: Any) -> Any:
        if isinstance(returned, InputSpec):
            return returned.groups
        if isinstance(returned, dict):
            return returned
        if isinstance(returned, list | tuple):
            return list(returned)
        return [returned]  # one tensor reaches model_fn as a list of one (manual, pitfall 4-0-1)

    def arrange(self, leaves: Sequence[Leaf]) -> Any:
        """`leaves` in the arrangement that `model_fn` is given."""
        packed = tf.nest.pack_sequence_as(self._pattern, list(leaves))
        if self._input_spec is None:
            return packed
        spec = InputSpec(self._input_spec.split_to_device)
        for group in packed:
            spec.new_input(group)
        return spec


def _flatten(pattern: Any, path: str = "") -> list[tuple[str, Any]]:
    """The leaves with their places, `[0]` or `['image']`, in the order of `tf.nest.flatten`."""
    if isinstance(pattern, dict):
        items = [(f"{path}[{key!r}]", pattern[key]) for key in sorted(pattern)]
    elif isinstance(pattern, list | tuple):
        items = [(f"{path}[{index}]", value) for index, value in enumerate(pattern)]
    else:
        return [(path, pattern)]
    return [leaf for place, value in items for leaf in _flatten(value, place)]


def _require_tensor(leaf: Any, path: str) -> Leaf:
    if isinstance(leaf, Leaf):
        return leaf
    if isinstance(leaf, tf.compat.v2.Variable):
        return tf.convert_to_tensor(leaf)
    if isinstance(leaf, np.ndarray | np.generic):
        kind = f"a numpy array of shape {leaf.shape} and type {leaf.dtype}"
    else:
        kind = f"a {type(leaf).__module__}.{type(leaf).__name__} ({leaf!r:.60})"
    raise TypeError(
        f"input_fn returned {kind} at position {path}: expected a tf.Tensor. "
        "Feed arrays with tf.data.Dataset.from_tensor_slices(...) or turn a constant into tf.constant(...)."
    )

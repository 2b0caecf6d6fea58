"""Properties of a `tf.data.Dataset` that its graph shows, without running it."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

#: Transformations of an infinite dataset that stay infinite, by the prefix of the operation type.
_STAYS_INFINITE = (
    "MapDataset",
    "ParallelMap",
    "BatchDataset",
    "ParallelBatch",
    "PaddedBatch",
    "ShuffleDataset",
    "PrefetchDataset",
    "SkipDataset",
    "CacheDataset",
    "OptionsDataset",
    "ModelDataset",
    "MapAndBatch",
    "WindowDataset",
    "ShuffleAndRepeat",
)


def variant_tensor(dataset: Any) -> tf.Tensor:
    """Returns the tensor that represents a dataset in its graph. Wrappers of one dataset share it.

    Example:
      >>> with tf.Graph().as_default():
      ...     variant_tensor(tf.data.Dataset.range(3)).dtype
      tf.variant
    """
    return dataset._variant_tensor


def is_endless(dataset: Any) -> bool:
    """Returns True if a dataset is certainly infinite, and therefore has no short last batch.

    Example:
      >>> with tf.Graph().as_default():
      ...     numbers = tf.data.Dataset.range(3)
      ...     is_endless(numbers), is_endless(numbers.repeat().shuffle(2).batch(2))
      (False, True)
    """
    return _endless(variant_tensor(dataset).op)


def is_sharded(dataset: Any) -> bool:
    """Returns True if the dataset, or one that it is derived from, was made by `Dataset.shard`.

    Example:
      >>> with tf.Graph().as_default():
      ...     numbers = tf.data.Dataset.range(8)
      ...     is_sharded(numbers.batch(2)), is_sharded(numbers.shard(2, 0).batch(2))
      (False, True)
    """
    pending = [variant_tensor(dataset).op]
    seen: set[tf.Operation] = set()
    while pending:
        op = pending.pop()
        if op.type.startswith("ShardDataset"):
            return True
        new = {tensor.op for tensor in op.inputs if tensor.dtype == tf.variant} - seen
        seen |= new
        pending.extend(new)
    return False


def _endless(op: tf.Operation) -> bool:
    if op.type.startswith("RangeDataset"):
        stop = tf.get_static_value(op.inputs[1])
        return stop is not None and int(stop) >= 2**62
    if op.type.startswith("RepeatDataset"):
        count = tf.get_static_value(op.inputs[1])
        return (count is not None and int(count) < 0) or _endless(op.inputs[0].op)
    if op.type.startswith("ZipDataset"):
        return all(_endless(tensor.op) for tensor in op.inputs)
    if op.type.startswith(_STAYS_INFINITE):
        return _endless(op.inputs[0].op)
    return False

"""What can be read off a data set without running it."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

#: Transformations after which an endless data set is still endless: by the start of their operation's type.
_KEEPS_LENGTH = (
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


def handle(dataset: Any) -> tf.Tensor:
    """The tensor that stands for a data set in its graph; a data set in another wrapping has the same.

    Example:
      >>> with tf.Graph().as_default():
      ...     handle(tf.data.Dataset.range(3)).dtype
      tf.variant
    """
    return dataset._variant_tensor


def is_endless(dataset: Any) -> bool:
    """True when a data set certainly has no end, so that it has no last, short batch.

    Example:
      >>> with tf.Graph().as_default():
      ...     numbers = tf.data.Dataset.range(3)
      ...     is_endless(numbers), is_endless(numbers.repeat().shuffle(2).batch(2))
      (False, True)
    """
    return _endless(handle(dataset).op)


def is_sharded(dataset: Any) -> bool:
    """True when `Dataset.shard` was called on the way to a data set.

    Example:
      >>> with tf.Graph().as_default():
      ...     numbers = tf.data.Dataset.range(8)
      ...     is_sharded(numbers.batch(2)), is_sharded(numbers.shard(2, 0).batch(2))
      (False, True)
    """
    waiting = [handle(dataset).op]
    seen: set[tf.Operation] = set()
    while waiting:
        op = waiting.pop()
        if op.type.startswith("ShardDataset"):
            return True
        new = {tensor.op for tensor in op.inputs if tensor.dtype == tf.variant} - seen
        seen |= new
        waiting.extend(new)
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
    if op.type.startswith(_KEEPS_LENGTH):
        return _endless(op.inputs[0].op)
    return False

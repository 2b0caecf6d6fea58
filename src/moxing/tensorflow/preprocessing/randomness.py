"""Random decisions of the training forms: all stateless, all derived from one seed per sample.

Every decision (how large, where, mirrored or not, ...) gets a seed of its own out of the sample's seed, so that the
result depends on that seed alone: not on the order of the samples, nor on how many of them are worked on at once.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tf1.surgery import ancestors

#: Graph collection of pairs (names of the operations that hand out a sample, the seed of that sample). The names of
#: these collections are no strings: a meta graph leaves such collections out.
SAMPLE_SEEDS = ("moxing/sample_seeds",)

#: Graph collection with one entry for every seed that was derived from `SAMPLE_SEEDS`.
_DERIVED_SEEDS = ("moxing/derived_sample_seeds",)


def sample_seed(tensor: tf.Tensor) -> tf.Tensor:
    """The seed, of shape [2], for augmenting the sample that `tensor` belongs to.

    Where a data set has registered its samples' seeds in the collection `SAMPLE_SEEDS` and `tensor` comes from
    it, the seed is derived from the sample's own, another one at every call: two augmentations of one sample differ.
    Elsewhere it is drawn, under the seed of the graph if that has one.

    Example:
      >>> with tf.Graph().as_default():
      ...     sample_seed(tf.zeros([4, 4, 3])).shape
      TensorShape([2])
    """
    registered = _registered_seed(tensor)
    if registered is None:
        return tf.random_uniform([2], maxval=2**31 - 1, dtype=tf.int32)
    derived = tf.get_collection_ref(_DERIVED_SEEDS)
    derived.append(tf.random.experimental.stateless_fold_in(registered, len(derived)))
    return derived[-1]


def _registered_seed(tensor: tf.Tensor) -> tf.Tensor | None:
    # A function's graph inherits the collections of the graph around it, whose operations it does not contain.
    entries = [(names, seed) for names, seed in tf.get_collection(SAMPLE_SEEDS) if seed.graph is tensor.graph]
    sources = frozenset[str]().union(*(names for names, _ in entries))
    if not sources:
        return None
    behind = {tensor.op.name}
    for op in ancestors([tensor], stop=sources).values():
        behind.update(source.op.name for source in op.inputs)
        behind.update(source.name for source in op.control_inputs)
    return next((seed for names, seed in entries if names & behind), None)


def as_seed(seed: Any) -> tf.Tensor:
    """`seed` as a tensor, after a look at its type and shape.

    Example:
      >>> with tf.Graph().as_default():
      ...     as_seed((1, 2)).dtype
      tf.int32
    """
    tensor = tf.convert_to_tensor(seed)
    if tensor.dtype not in (tf.int32, tf.int64) or not tensor.shape.is_compatible_with([2]):
        raise ValueError(
            f"seed={seed!r}: expected two integers (int32 or int64, shape [2]), got {tensor.dtype.name} "
            f"of shape {tensor.shape}."
        )
    return tensor


def split(seed: tf.Tensor, count: int) -> list[tf.Tensor]:
    """`count` independent seeds out of one.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     a, b = session.run(split(tf.constant([1, 2]), 2))
      >>> a.shape, bool((a == b).all())
      ((2,), False)
    """
    return tf.unstack(tf.random.experimental.stateless_split(seed, num=count), num=count)


def uniforms(seed: tf.Tensor, count: int) -> list[tf.Tensor]:
    """`count` independent numbers from [0, 1), in one operation: cheaper than a seed for each.

    Example:
      >>> with tf.Graph().as_default():
      ...     len(uniforms(tf.constant([1, 2]), 4))
      4
    """
    return tf.unstack(tf.random.stateless_uniform([count], seed), num=count)


def whole(uniform: tf.Tensor, lowest: Any, highest: Any) -> tf.Tensor:
    """The whole number from `lowest` to `highest` that a uniform number from [0, 1) stands for, as int32.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     [int(session.run(whole(tf.constant(part), 3, 5))) for part in (0.0, 0.5, 0.99)]
      [3, 4, 5]
    """
    many = tf.cast(highest - lowest + 1, tf.float32)
    # A uniform number of 24 bits times a large one can round up to one too many.
    return tf.minimum(lowest + tf.cast(uniform * many, tf.int32), highest)


def integer(seed: tf.Tensor, lowest: Any, highest: Any) -> tf.Tensor:
    """An int32 scalar, each of `lowest`, ..., `highest` equally likely.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     int(session.run(integer(tf.constant([1, 2]), 7, 7)))
      7
    """
    return tf.random.stateless_uniform([], seed, minval=lowest, maxval=highest + 1, dtype=tf.int32)


def coin(seed: tf.Tensor) -> tf.Tensor:
    """A bool scalar, true half of the time.

    Example:
      >>> with tf.Graph().as_default():
      ...     coin(tf.constant([1, 2])).dtype
      tf.bool
    """
    return tf.random.stateless_uniform([], seed) < 0.5

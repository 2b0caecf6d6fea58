"""Random numbers of the training forms: stateless, derived from one seed per sample.

Every decision (size, position, flip, ...) gets its own seed, derived from the seed of the sample. So the result depends
only on that seed: not on the order of the samples, nor on the number of threads.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tf1.graph.surgery import ancestors

#: Graph collection of pairs (names of the operations that return a sample, the seed of that sample). The names of
#: these collections are not strings: a meta graph omits such collections.
SAMPLE_SEEDS = ("moxing/sample_seeds",)

#: Graph collection of the seeds that were derived from `SAMPLE_SEEDS`.
_DERIVED_SEEDS = ("moxing/derived_sample_seeds",)


def sample_seed(tensor: tf.Tensor) -> tf.Tensor:
    """Returns the seed, of shape [2], for augmenting the sample that `tensor` belongs to.

    If `tensor` comes from a dataset that has registered the seeds of its samples in the collection `SAMPLE_SEEDS`, the
    seed is derived from that of the sample. Every call returns another seed, so that two augmentations of one sample
    differ. Otherwise the seed is drawn at random, subject to the seed of the graph.

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
    # The graph of a function inherits the collections of the outer graph, but not its operations.
    entries = [(names, seed) for names, seed in tf.get_collection(SAMPLE_SEEDS) if seed.graph is tensor.graph]
    sources = frozenset[str]().union(*(names for names, _ in entries))
    if not sources:
        return None
    upstream = {tensor.op.name}
    for op in ancestors([tensor], stop=sources).values():
        upstream.update(source.op.name for source in op.inputs)
        upstream.update(source.name for source in op.control_inputs)
    return next((seed for names, seed in entries if names & upstream), None)


def as_seed(seed: Any) -> tf.Tensor:
    """Converts `seed` to a tensor and checks its type and shape.

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
    """Derives `count` independent seeds from one.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     a, b = session.run(split(tf.constant([1, 2]), 2))
      >>> a.shape, bool((a == b).all())
      ((2,), False)
    """
    return tf.unstack(tf.random.experimental.stateless_split(seed, num=count), num=count)


def uniforms(seed: tf.Tensor, count: int) -> list[tf.Tensor]:
    """Returns `count` independent numbers from [0, 1), by one operation: cheaper than a seed for each.

    Example:
      >>> with tf.Graph().as_default():
      ...     len(uniforms(tf.constant([1, 2]), 4))
      4
    """
    return tf.unstack(tf.random.stateless_uniform([count], seed), num=count)


def whole(uniform: tf.Tensor, lowest: Any, highest: Any) -> tf.Tensor:
    """Maps a uniform number from [0, 1) to an integer from `lowest` to `highest`, as int32.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     [int(session.run(whole(tf.constant(part), 3, 5))) for part in (0.0, 0.5, 0.99)]
      [3, 4, 5]
    """
    many = tf.cast(highest - lowest + 1, tf.float32)
    # The product of a uniform number of 24 bits and a large number can round up beyond the range.
    return tf.minimum(lowest + tf.cast(uniform * many, tf.int32), highest)


def integer(seed: tf.Tensor, lowest: Any, highest: Any) -> tf.Tensor:
    """Returns a random int32 scalar, uniform over `lowest`, ..., `highest`.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     int(session.run(integer(tf.constant([1, 2]), 7, 7)))
      7
    """
    return tf.random.stateless_uniform([], seed, minval=lowest, maxval=highest + 1, dtype=tf.int32)


def coin(seed: tf.Tensor) -> tf.Tensor:
    """Returns a random bool scalar, true with probability 1/2.

    Example:
      >>> with tf.Graph().as_default():
      ...     coin(tf.constant([1, 2])).dtype
      tf.bool
    """
    return tf.random.stateless_uniform([], seed) < 0.5

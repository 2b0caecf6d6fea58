"""Half precision: the type that a network computes in."""

from __future__ import annotations

import functools

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS

HALF = (tf.float16, tf.bfloat16)


def has_gpu() -> bool:
    """Whether the model runs on a GPU.

    Example:
      >>> isinstance(has_gpu(), bool)
      True
    """
    return not FLAGS.get("clone_on_cpu") and bool(tf.config.list_physical_devices("GPU"))


def computes_half() -> bool:
    """Whether half precision is computed in half precision: on a GPU, or with `--exact_fp16`.

    Example:
      >>> computes_half() == has_gpu()
      True
    """
    return has_gpu() or bool(FLAGS.get("exact_fp16"))


def model_dtype() -> tf.DType | None:
    """Returns the type that `--use_fp16` changes a float32 model to, or None.

    Example:
      >>> model_dtype() is None
      True
    """
    if not FLAGS.get("use_fp16"):
        return None
    if computes_half():
        return tf.float16
    _warn_once("--use_fp16")
    return None


def computing_dtype(dtype: tf.DType, exporting: bool = False) -> tf.DType:
    """Returns the type that a network computes in.

    Without a GPU half precision takes several times as long as float32 (convolutions in float16 3.6 times, in bfloat16
    11 times), so the network computes in float32, unless `--exact_fp16` is set.

    Args:
      dtype: type of the images.
      exporting: true for a SavedModel: a server may run on a CPU, so half precision becomes float32.

    Example:
      >>> computing_dtype(tf.float32)
      tf.float32
    """
    if exporting:
        return tf.float32 if dtype in HALF else dtype
    if dtype == tf.float32:
        return model_dtype() or dtype
    if dtype not in HALF or computes_half():
        return dtype
    _warn_once(dtype.name)
    return tf.float32


@functools.cache
def _warn_once(asked: str) -> None:
    tf.logging.warning(
        "%s: there is no GPU to accelerate half precision, so the network computes in float32 and returns the type "
        "that the script expects. --exact_fp16=True computes it as written, several times slower.",
        asked,
    )

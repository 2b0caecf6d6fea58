"""Half precision: in which type a network computes, and which one the script sees."""

from __future__ import annotations

import functools

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS

HALF = (tf.float16, tf.bfloat16)


def has_gpu() -> bool:
    """Whether a GPU will run the model.

    Example:
      >>> isinstance(has_gpu(), bool)
      True
    """
    return not FLAGS.get("clone_on_cpu") and bool(tf.config.list_physical_devices("GPU"))


def half_as_written() -> bool:
    """Whether half precision is computed as such: on a GPU, or where `--exact_fp16` asks for it.

    Example:
      >>> half_as_written() == has_gpu()
      True
    """
    return has_gpu() or bool(FLAGS.get("exact_fp16"))


def model_dtype() -> tf.DType | None:
    """The half precision that `--use_fp16` puts a model of float32 into, or None.

    Example:
      >>> model_dtype() is None
      True
    """
    if not FLAGS.get("use_fp16"):
        return None
    if half_as_written():
        return tf.float16
    _warn_once("--use_fp16")
    return None


def computing_dtype(asked: tf.DType) -> tf.DType:
    """The type that a network given images of type `asked` computes in.

    Half precision that no device accelerates takes several times as long as float32 (spec: float16 convolutions 3.6
    times, bfloat16 11 times), so it is computed in float32, unless `--exact_fp16` asks for it as it is written.

    Example:
      >>> computing_dtype(tf.float32)
      tf.float32
    """
    if asked == tf.float32:
        return model_dtype() or asked
    if asked not in HALF or half_as_written():
        return asked
    _warn_once(asked.name)
    return tf.float32


@functools.cache
def _warn_once(asked: str) -> None:
    tf.logging.warning(
        "%s: no GPU is there to accelerate half precision, so the network computes in float32 and returns the type "
        "that the script expects. --exact_fp16=True computes it as written, several times slower.",
        asked,
    )

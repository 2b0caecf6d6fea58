"""`mox.var_scope`: variables stored in one type, used in another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v1 as tf


@contextmanager
def var_scope(force_dtype: Any = None) -> Iterator[None]:
    """Inside, `tf.get_variable` stores its variable as `force_dtype` and returns it cast to the type asked for.

    Losses of regularizers have the type asked for too. A variable that is not trained is never stored in a smaller
    type than asked for: it is there to be assigned to, such as a moving average, which a cast cannot be.

    Args:
      force_dtype: the type of the variables, for example `tf.float32` in a half-precision model; None changes nothing.

    Example:
      >>> with tf.Graph().as_default(), var_scope(force_dtype=tf.float32):
      ...     a = tf.get_variable('a', shape=[], dtype=tf.float16)
      ...     print(a, tf.global_variables()[0].dtype.name)
      Tensor("Cast:0", shape=(), dtype=float16) float32
    """
    if force_dtype is None:
        yield
        return
    try:
        stored = tf.as_dtype(force_dtype)
    except TypeError:
        raise TypeError(f"mox.var_scope(force_dtype={force_dtype!r}): expected a type such as tf.float32.") from None
    if not stored.is_floating:
        raise ValueError(
            f"mox.var_scope(force_dtype={force_dtype!r}): expected a floating-point type such as tf.float32."
        )

    # TensorFlow passes the next getter by this name, and the others by the names of `tf.get_variable`.
    def stored_then_cast(
        getter: Callable[..., Any], name: str, shape: Any = None, dtype: Any = None, initializer: Any = None,
        regularizer: Any = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        # A value decides the type itself, whatever `dtype` says.
        value = None if initializer is None or callable(initializer) else tf.convert_to_tensor(initializer)
        wanted = tf.as_dtype(dtype or tf.float32) if value is None else value.dtype.base_dtype
        smaller = stored.size < wanted.size
        if wanted == stored or not wanted.is_floating or (smaller and kwargs.get("trainable") is False):
            return getter(name, shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer, **kwargs)
        if value is not None:
            initializer = tf.cast(value, stored)
        if regularizer is not None:
            regularizer = _regularizer_as(wanted, smaller, regularizer)
        variable = getter(name, shape=shape, dtype=stored, initializer=initializer, regularizer=regularizer, **kwargs)
        return tf.cast(variable, wanted, name="Cast")

    with tf.variable_scope(tf.get_variable_scope(), custom_getter=stored_then_cast, auxiliary_name_scope=False):
        yield


def _regularizer_as(wanted: tf.DType, smaller: bool, regularizer: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`regularizer` computed in the larger of two types; its loss has the type `wanted`."""

    def cast_loss(variable: Any) -> Any:
        loss = regularizer(tf.cast(variable, wanted) if smaller else variable)
        return None if loss is None else tf.cast(loss, wanted)

    return cast_loss

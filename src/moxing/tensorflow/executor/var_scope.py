"""`mox.var_scope`: stores variables in one type and uses them in another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v1 as tf


@contextmanager
def var_scope(force_dtype: Any = None) -> Iterator[None]:
    """Inside, `tf.get_variable` stores its variable as `force_dtype` and returns it cast to the requested type.

    Losses of regularizers have the requested type too. A variable that is not trainable is never stored in a smaller
    type than requested: code assigns to it (a moving average, for example), and a cast cannot be assigned to.

    Args:
      force_dtype: type of the variables, such as `tf.float32` in a half-precision model; None changes nothing.

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

    # TensorFlow passes arguments by these names: those of `tf.get_variable`, and `getter`.
    def stored_then_cast(
        getter: Callable[..., Any], name: str, shape: Any = None, dtype: Any = None, initializer: Any = None,
        regularizer: Any = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        # An initial value determines the type, whatever `dtype` says.
        value = None if initializer is None or callable(initializer) else tf.convert_to_tensor(initializer)
        requested = tf.as_dtype(dtype or tf.float32) if value is None else value.dtype.base_dtype
        smaller = stored.size < requested.size
        if requested == stored or not requested.is_floating or (smaller and kwargs.get("trainable") is False):
            return getter(name, shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer, **kwargs)
        if value is not None:
            initializer = tf.cast(value, stored)
        if regularizer is not None:
            regularizer = _regularizer_as(requested, smaller, regularizer)
        variable = getter(name, shape=shape, dtype=stored, initializer=initializer, regularizer=regularizer, **kwargs)
        return tf.cast(variable, requested, name="Cast")

    with tf.variable_scope(tf.get_variable_scope(), custom_getter=stored_then_cast, auxiliary_name_scope=False):
        yield


def _regularizer_as(requested: tf.DType, smaller: bool, regularizer: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Computes `regularizer` in the larger of the two types; its loss has the type `requested`."""

    def cast_loss(variable: Any) -> Any:
        loss = regularizer(tf.cast(variable, requested) if smaller else variable)
        return None if loss is None else tf.cast(loss, requested)

    return cast_loss

"""`mox.var_scope`: variables stored in one type, used in another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v1 as tf


@contextmanager
def var_scope(force_dtype: Any = None) -> Iterator[None]:
    """Inside, `tf.get_variable` stores its variable as `force_dtype` and returns it cast to the type asked for.

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

    # TensorFlow passes the next getter by this name.
    def stored_then_cast(getter: Callable[..., Any], name: str, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        wanted = tf.as_dtype(dtype or tf.float32)
        if wanted == stored or not wanted.is_floating:
            return getter(name, *args, dtype=dtype, **kwargs)
        initializer = kwargs.get("initializer")
        if isinstance(initializer, tf.Tensor):
            kwargs["initializer"] = tf.cast(initializer, stored)
        return tf.cast(getter(name, *args, dtype=stored, **kwargs), wanted, name="Cast")

    with tf.variable_scope(tf.get_variable_scope(), custom_getter=stored_then_cast, auxiliary_name_scope=False):
        yield

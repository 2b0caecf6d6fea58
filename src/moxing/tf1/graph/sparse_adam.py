"""Adam on the gradients of embeddings, in one pass over the variable."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def install() -> None:
    """Makes `tf.train.AdamOptimizer` apply a sparse gradient as a dense one.

    It decays the moments of all rows either way, so the result is the same up to rounding. TensorFlow does it with
    about ten operations over the whole variable, and its scatter operations make every later read copy the moments.
    Subclasses that have a sparse update of their own keep it.
    """
    import tensorflow.compat.v1 as tf

    adam = tf.train.AdamOptimizer
    if not hasattr(adam._resource_apply_sparse, "__wrapped__"):
        adam._resource_apply_sparse = _in_one_pass(adam, adam._resource_apply_sparse)


def _in_one_pass(adam: Any, apply_sparse: Callable[..., Any]) -> Callable[..., Any]:
    import tensorflow.compat.v1 as tf

    plain_update = adam._apply_sparse_shared

    @functools.wraps(apply_sparse)
    def apply(self: Any, grad: Any, var: Any, indices: Any) -> Any:
        if type(self)._apply_sparse_shared is not plain_update:
            return apply_sparse(self, grad, var, indices)
        shape = tf.raw_ops.VariableShape(input=var.handle, out_type=indices.dtype)
        # The caller has summed up rows that occur twice.
        dense = tf.scatter_nd(tf.expand_dims(indices, 1), grad, shape)
        # Not the method of a subclass: it may expect only gradients of other variables.
        return adam._resource_apply_dense(self, dense, var)

    return apply

"""Optimizers around optimizers: moving averages, gradients that are zero, and the norm of variables."""

from __future__ import annotations

import contextlib
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1
Optimizer: Any = v1.train.Optimizer


class MovingAverageOptimizer(Optimizer):
    """Keeps moving averages of the trained variables.

    Args:
      opt: the optimizer.
      average_decay: decay of the averages.
      num_updates: as in `tf.train.ExponentialMovingAverage`.
      sequential_update: whether the averages are updated after the variables, or at the same time.
    """

    def __init__(
        self, opt: Any, average_decay: float = 0.9999, num_updates: Any = None, sequential_update: bool = True
    ) -> None:
        super().__init__(False, "MovingAverage")
        self._optimizer = opt
        self._ema = v1.train.ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._swaps: dict[str, Any] | None = None
        self._sequential_update = sequential_update

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Computes gradients as the optimizer does."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients, and updates the averages."""
        pairs = list(grads_and_vars)
        train_op = self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)
        trained = [var for grad, var in pairs if grad is not None]
        with tf.control_dependencies([train_op] if self._sequential_update else []):
            averaged = self._ema.apply(trained)
        self._swaps = {}
        for var in trained:
            average = self._ema.average(var)
            self._swaps[var.op.name], self._swaps[average.op.name] = average, var
        return tf.group(train_op, averaged, name="train_with_avg")

    def swapping_saver(self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any) -> Any:
        """Returns a saver that saves averages under the names of their variables, and the other way round.

        Args:
          var_list: variables to save, or a dict of them by name. Default: all.
          name: name of the saver.
          **kwargs: arguments of `tf.train.Saver`.
        """
        if self._swaps is None:
            raise RuntimeError("call minimize or apply_gradients before swapping_saver")
        variables = v1.global_variables() if var_list is None else var_list
        named = variables if isinstance(variables, dict) else {var.op.name: var for var in variables}
        swapped = {key: self._swaps.get(var.op.name, var) for key, var in named.items()}
        return v1.train.Saver(swapped, name=name, **kwargs)


class MultitaskOptimizerWrapper:
    """Leaves a variable and its slots as they are when its gradient is all zeros: a task without samples.

    Changes the optimizer that it gets, as in TensorFlow 1.
    """

    def __init__(self, opt: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise TypeError(f"opt must be a tf.train.Optimizer, got {opt!r}")
        self._opt = opt
        for name in ("_resource_apply_dense", "_resource_apply_sparse"):
            setattr(opt, name, _unless_zero(getattr(opt, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opt, name)


def clip_gradients_by_global_norm(gradients_variables: Any, clip_norm: Any = 20.0) -> tuple[list[Any], Any]:
    """Returns pairs with gradients clipped by their global norm, and that norm.

    Args:
      gradients_variables: pairs of gradient and variable.
      clip_norm: the largest norm.
    """
    gradients, variables = zip(*gradients_variables, strict=True)
    clipped, norm = tf.clip_by_global_norm(list(gradients), clip_norm)
    return list(zip(clipped, variables, strict=True)), norm


class VariableClippingOptimizer(Optimizer):
    """Clips the norm of variables after each step.

    Args:
      opt: the optimizer.
      vars_to_clip_dims: variables, with the dimensions over which the norm is computed.
      max_norm: the largest norm.
      use_locking: whether updates lock.
      colocate_clip_ops_with_vars: whether to clip on the device of the variable.
      name: name of the operations.
    """

    def __init__(
        self,
        opt: Any,
        vars_to_clip_dims: dict[Any, list[int]],
        max_norm: Any,
        use_locking: bool = False,
        colocate_clip_ops_with_vars: bool = False,
        name: str = "VariableClipping",
    ) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._dims = {var.op.name: list(dims) for var, dims in vars_to_clip_dims.items()}
        self._max_norm = max_norm
        self._colocate = colocate_clip_ops_with_vars

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Computes gradients as the optimizer does."""
        return self._opt.compute_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """Returns a slot of the optimizer."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the names of the slots of the optimizer."""
        return self._opt.get_slot_names(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients, then clips the variables that had one."""
        pairs = list(grads_and_vars)
        train_op = self._opt.apply_gradients(pairs, global_step=global_step)
        with tf.control_dependencies([train_op]):
            clipped = [self._clip(grad, var) for grad, var in pairs if grad is not None and var.op.name in self._dims]
        return tf.group(train_op, *clipped, name=name or self._name)

    def _clip(self, grad: Any, var: Any) -> Any:
        dims = self._dims[var.op.name]
        with v1.colocate_with(var.handle) if self._colocate else contextlib.nullcontext():
            if isinstance(grad, tf.IndexedSlices) and 0 not in dims:
                indices = tf.unique(grad.indices).y
                rows = tf.clip_by_norm(tf.gather(var.read_value(), indices), self._max_norm, dims)
                return var.scatter_update(tf.IndexedSlices(rows, indices), use_locking=self._use_locking)
            value = tf.clip_by_norm(var.read_value(), self._max_norm, dims)
            return var.assign(value, use_locking=self._use_locking)


def _unless_zero(apply: Any) -> Any:
    def maybe_apply(grad: Any, *args: Any) -> Any:
        def applied() -> Any:
            with tf.control_dependencies([apply(grad, *args)]):
                return tf.constant(True)

        return tf.cond(tf.reduce_any(tf.not_equal(grad, 0)), applied, lambda: tf.constant(False)).op

    return maybe_apply

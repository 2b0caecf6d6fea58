"""Decoupled weight decay (https://arxiv.org/abs/1711.05101): variables shrink before each step, apart from the loss."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

v1 = tf.compat.v1
AdamOptimizer: Any = v1.train.AdamOptimizer
MomentumOptimizer: Any = v1.train.MomentumOptimizer


class DecoupledWeightDecayExtension:
    """The first base class of an optimizer with weight decay.

    `minimize` and `apply_gradients` have one more argument, `decay_var_list`: the variables that decay, by default all.
    Of a variable with a sparse gradient, only the rows that it has decay.
    """

    def __init__(self, weight_decay: Any, **kwargs: Any) -> None:
        self._weight_decay = weight_decay
        self._decayed: set[str] | None = None
        super().__init__(**kwargs)

    def minimize(self, loss: Any, *args: Any, decay_var_list: Any = None, **kwargs: Any) -> Any:
        """Minimises a loss; arguments of `tf.train.Optimizer.minimize`."""
        names = _names(decay_var_list)
        base: Any = super()
        # `minimize` calls `apply_gradients` without the list.
        self._decayed_in_minimize = names
        try:
            return base.minimize(loss, *args, **kwargs)
        finally:
            self._decayed_in_minimize = None

    _decayed_in_minimize: set[str] | None = None

    def apply_gradients(self, grads_and_vars: Any, *args: Any, decay_var_list: Any = None, **kwargs: Any) -> Any:
        """Applies gradients; arguments of `tf.train.Optimizer.apply_gradients`."""
        self._decayed = _names(decay_var_list) or self._decayed_in_minimize
        base: Any = super()
        return base.apply_gradients(grads_and_vars, *args, **kwargs)

    def _decay(self, dtype: Any) -> Any:
        decay = self._weight_decay() if callable(self._weight_decay) else self._weight_decay
        return tf.cast(decay, dtype)

    def _does_decay(self, var: Any) -> bool:
        return not self._decayed or var.op.name in self._decayed

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        before = [var.assign_sub(self._decay(var.dtype) * var)] if self._does_decay(var) else []
        base: Any = super()
        with tf.control_dependencies(before):
            return base._resource_apply_dense(grad, var)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        before = []
        if self._does_decay(var):
            rows = self._decay(var.dtype) * tf.gather(var, indices)
            before = [var.scatter_sub(tf.IndexedSlices(rows, indices))]
        base: Any = super()
        with tf.control_dependencies(before):
            return base._resource_apply_sparse(grad, var, indices)


def extend_with_decoupled_weight_decay(base_optimizer: Any) -> Any:
    """Returns a class of optimizers with weight decay, whose first argument is the decay.

    Args:
      base_optimizer: a subclass of `tf.train.Optimizer` whose step does not depend on the value of the variable.

    Example:
      >>> AdagradW = extend_with_decoupled_weight_decay(v1.train.AdagradOptimizer)
      >>> issubclass(AdagradW, v1.train.AdagradOptimizer)
      True
    """

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):
        """The optimizer, with weight decay."""

    return OptimizerWithDecoupledWeightDecay


class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """`tf.train.MomentumOptimizer` with weight decay."""

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            momentum=momentum,
            use_locking=use_locking,
            name=name,
            use_nesterov=use_nesterov,
        )


class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """`tf.train.AdamOptimizer` with weight decay. The decay is not multiplied by the learning rate."""

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            use_locking=use_locking,
            name=name,
        )


def _names(variables: Any) -> set[str] | None:
    return {one.op.name for one in variables} if variables else None

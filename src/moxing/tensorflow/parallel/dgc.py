"""`distributed_replicated_dgc`: `collective`, but a worker sends only the largest values of its gradients.

A worker accumulates what it does not send until it is large enough: see
`moxing.tensorflow.optimizer.wrappers.compression`. Positions and values go around the ring (`sparse_exchange.py`).
Every worker adds up those of all workers in the same order and applies the sum, so all workers stay equal.
Accumulated values are in the worker's memory and in no checkpoint: a resumed training starts with none.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError
from moxing.tensorflow.optimizer.wrappers.batch_gradients import BatchGradientsOptimizer
from moxing.tensorflow.optimizer.wrappers.compression import Settings, settings
from moxing.tensorflow.optimizer.wrappers.dgc import DgcOptimizer, without_momentum
from moxing.tensorflow.optimizer.wrappers.wrapper import OptimizerWrapper
from moxing.tensorflow.parallel.collective import Collective
from moxing.tensorflow.parallel.gradients import GradientPairs
from moxing.tensorflow.parallel.optimizers import clip_gradients, make_optimizer
from moxing.tensorflow.parallel.sparse_exchange import SparseExchange
from moxing.tensorflow.parallel.strategy import register_strategy
from moxing.tensorflow.parallel.train_step import TrainSetup, TrainStep

_NAME = "--variable_update=distributed_replicated_dgc"


@register_strategy("distributed_replicated_dgc", cluster=True)
class Dgc(Collective):
    """Variables on every worker; only the largest values of the gradients are summed. Arguments: `Collective`.

    The momentum of `tf.train.MomentumOptimizer` becomes part of the compression, and the optimizer does plain gradient
    descent. `--gradient_clip` is applied to the gradients of every worker before they are accumulated, with the bound
    divided by the square root of the number of workers.
    """

    clips_mean = False
    always_by_ring = True

    def train_op(self, setup: TrainSetup) -> TrainStep:
        if FLAGS.get("loss_scale") == "dynamic":
            raise FlagError(
                f"--loss_scale=dynamic with {_NAME}: infinite gradients would stay in the accumulated values of the "
                "workers; give a number."
            )
        counts = [tower.weight if tower.samples is None else tower.samples for tower in setup.towers]
        known = [tf.cast(count, tf.int64) for count in counts if count is not None]
        with self.local_device():
            # Estimated from this worker's batch: the sparsity may differ between workers.
            self._samples = tf.add_n(known) * self.num_workers if known else tf.zeros([], tf.int64)
            self._step = setup.global_step.read_value()
        self._settings: list[Settings] = []
        functions = [functools.partial(self._make_plain_optimizer, function) for function in setup.optimizer_fns]
        return super().train_op(dataclasses.replace(setup, optimizer_fns=functions))

    def _make_plain_optimizer(self, optimizer_fn: Callable[..., Any]) -> Any:
        """The optimizer without its momentum, which goes into the settings of the compression."""
        optimizer = make_optimizer(optimizer_fn)
        wanted = settings()
        if isinstance(optimizer, DgcOptimizer):
            wanted, optimizer = optimizer.settings, optimizer.wrapped
        plain, momentum, nesterov = without_momentum(optimizer)
        if wanted.momentum is not None:
            if momentum not in (0.0, wanted.momentum):
                tf.logging.warning("%s uses momentum %g, not %g.", _NAME, wanted.momentum, momentum)
            momentum = wanted.momentum
        if wanted.nesterov is not None:
            nesterov = wanted.nesterov
        if momentum:
            _check_optimizer(plain)
        self._settings.append(dataclasses.replace(wanted, momentum=momentum, nesterov=nesterov))
        return plain

    def _all_reduce_gradients(self, groups: Sequence[GradientPairs]) -> list[GradientPairs]:
        if self._ring is None:
            raise RuntimeError(
                f"{_NAME} needs connections between the workers on ports of its own, and only those of "
                "--worker_hosts are open: open them, or use --variable_update=collective."
            )
        exchange = SparseExchange(self._ring)
        selected, types = [], []
        for group, how in zip(groups, self._settings, strict=True):
            for gradient, variable in clip_gradients(group, 1 / math.sqrt(self.num_workers)):
                # Sums need more digits than half precision has.
                tensor = tf.convert_to_tensor(gradient)
                wide = tf.cast(tensor, tf.float32) if tensor.dtype.size < 4 else tensor
                compress = exchange.add(variable.shape.num_elements(), np.dtype(wide.dtype.as_numpy_dtype), how)
                with self.local_device():
                    # Compress at once, while the backward pass still computes other gradients.
                    selected.append(tf.numpy_function(compress, [wide, self._step, self._samples], tf.int64))
                types.append(wide.dtype)
        with self.local_device(), tf.control_dependencies(self._last_reduce):
            sums = tf.numpy_function(exchange.all_reduce, [tf.add_n(selected)], types)
        self._last_reduce = [sums[0].op]
        remaining = iter(sums)
        return [
            [
                (tf.cast(tf.reshape(next(remaining), variable.shape), variable.dtype.base_dtype), variable)
                for _, variable in group
            ]
            for group in groups
        ]


def _check_optimizer(optimizer: Any) -> None:
    """Raises an error for an optimizer whose momentum cannot move into the compression."""
    while isinstance(optimizer, OptimizerWrapper):
        if isinstance(optimizer, BatchGradientsOptimizer):
            raise ValueError(
                f"batch_gradients with {_NAME}: momentum would count every batch and not every update; use an "
                "optimizer without momentum, and leave --dgc_momentum out."
            )
        optimizer = optimizer.wrapped
    if type(optimizer) is not tf.train.GradientDescentOptimizer:
        raise ValueError(
            f"{type(optimizer).__name__} with {_NAME} and --dgc_momentum: expected "
            "tf.train.GradientDescentOptimizer or tf.train.MomentumOptimizer; leave --dgc_momentum out for others."
        )

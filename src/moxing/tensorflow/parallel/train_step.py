"""What a strategy gets to build a training step, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.parallel.gradients import GradientPairs

#: Values of `TrainStep.halt`: a hook of one worker asked to stop, or one worker got a signal.
HOOK, SIGNAL = 1, 2


@dataclass(frozen=True)
class Tower:
    """What training needs of one tower.

    Attributes:
      losses: its losses.
      var_scopes: for every loss the variable scopes that it trains, or None for all variables.
      weight: number of samples that its gradients are the mean of. None: every tower has the same number.
      samples: number of samples of its batch, set also where `weight` is None.
    """

    losses: Sequence[tf.Tensor]
    var_scopes: Sequence[Sequence[str] | None]
    weight: tf.Tensor | None = None
    samples: tf.Tensor | None = None


@dataclass(frozen=True)
class TrainSetup:
    """Everything that `Strategy.train_op` builds a training step from.

    Attributes:
      towers: the towers of this process.
      optimizer_fns: for every loss a function that returns its optimizer.
      before: operations that run before the updates: the arrival of the batches, batch-norm moving averages.
      global_step: the step counter.
      max_steps: the value of `global_step` at which training ends.
      batch_size: samples of a full batch, or None if unknown.
    """

    towers: Sequence[Tower]
    optimizer_fns: Sequence[Callable[..., Any]]
    before: Sequence[tf.Operation]
    global_step: tf.Variable
    max_steps: int = 2**63 - 1
    batch_size: int | None = None


@dataclass(frozen=True)
class TrainStep:
    """A training step, as built by `Strategy.train_op`.

    Attributes:
      op: does the step: all gradients, then all updates, then `global_step` once.
      optimizers: the optimizers that this process applies gradients with.
      gradients: for every loss the gradients that this process applies, before clipping.
      flush: run once after the end of the data; applies gradients that optimizers have accumulated but not applied.
      leave: run once when this worker leaves, also before the end of the data; lets go workers that wait for it.
      halt: 0, or `HOOK` or `SIGNAL` if all workers stop after this step. None: each worker decides for itself.
      next_steps: number of steps that all workers do in the next `session.run`. None: each worker decides for itself.
      reached: not 0 if `global_step` is at `max_steps`. None: no other worker advances `global_step`.
    """

    op: tf.Operation
    optimizers: Sequence[Any]
    gradients: Sequence[GradientPairs]
    flush: tf.Operation | None = None
    leave: tf.Operation | None = None
    halt: tf.Tensor | None = None
    next_steps: tf.Tensor | None = None
    reached: tf.Tensor | None = None

"""Builds the step of a run: input, model, training operation, summaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.executor.build.inputs import Inputs, Share, build_inputs
from moxing.tensorflow.executor.build.ledger import Ledger
from moxing.tensorflow.executor.build.model import Model, build_model
from moxing.tensorflow.executor.checkpoints.position import Position
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.hooks.evaluation import EvaluationHook
from moxing.tensorflow.executor.specs import ModeKeys
from moxing.tensorflow.optimizer.rate_factor import learning_rates, rate_factor, with_factor
from moxing.tensorflow.optimizer.step_context import step_context
from moxing.tensorflow.parallel import Strategy, Tower, TrainSetup, TrainStep
from moxing.tensorflow.parallel.gradients import normalize_weights, weighted_sum
from moxing.tf1.graph.data_seeds import data_seeds
from moxing.tf1.graph.surgery import CONDITIONALS, run_after


@dataclass(frozen=True)
class CheckValues:
    """What the last step of a call reports; the defaults are the values of checks that a step does not compute.

    Attributes:
      finite: False if a loss is NaN or infinite.
      halt: not 0 if all workers stop after this step; see `TrainStep`.
      reached: not 0 if `global_step` is at `max_steps`.
      next_steps: number of steps that all workers do in the next call.
      guard: number, from 1, of a tensor of `Step.guarded` that is not finite, else 0.
    """

    finite: bool = True
    halt: int = 0
    reached: int = 0
    next_steps: int = 1
    guard: int = 0


@dataclass(frozen=True)
class Checks:
    """The tensors behind `CheckValues`; None if the step does not compute one."""

    finite: tf.Tensor | None = None
    halt: tf.Tensor | None = None
    reached: tf.Tensor | None = None
    next_steps: tf.Tensor | None = None
    guard: tf.Tensor | None = None


@dataclass
class Step:
    """The parts of a step in the graph.

    Attributes:
      inputs: the batch, and the data behind it.
      models: what `model_fn` returned, for every tower.
      lengths: number of samples in the batch of every tower.
      strategy: where variables are placed and how gradients are combined.
      operation: does one step, the ledger included.
      ledger: counters in the graph.
      global_step: the counter of training steps.
      checks: what decides whether another step follows.
      train: the training step that the strategy built; None in other modes than TRAIN.
      summary: all summaries merged, or None.
      rate_factor: the factor on the learning rate that evaluation hooks set, if any does.
      guard_factor: the factor that `NanGuardHook` sets, if there is one.
      rates: the learning rates in use, by tag.
      probes: scalars by name that are computed only when an action wants them.
      guarded: names of tensors that must stay finite.
    """

    inputs: Inputs
    models: list[Model]
    lengths: list[tf.Tensor]
    strategy: Strategy
    operation: tf.Operation
    ledger: Ledger
    global_step: tf.Variable
    checks: Checks
    summary: tf.Tensor | None
    train: TrainStep | None = None
    rate_factor: tf.Variable | None = None
    guard_factor: tf.Variable | None = None
    rates: dict[str, tf.Tensor] = field(default_factory=dict)
    probes: dict[str, tf.Tensor] = field(default_factory=dict)
    guarded: list[str] = field(default_factory=list)

    @property
    def model(self) -> Model:
        """The model of the first tower."""
        return self.models[0]


def build_step(config: RunConfig, strategy: Strategy, position: Position, seed: int) -> Step:
    """Builds the step of `config` in the current graph.

    Args:
      config: the arguments of the run.
      strategy: where variables are placed and how gradients are combined.
      position: where to start in the data.
      seed: the shuffle seed, unless the script sets one.
    """
    training = config.mode is ModeKeys.TRAIN
    global_step = tf.train.get_or_create_global_step()
    with data_seeds(seed):
        share = Share(strategy.num_towers, strategy.num_workers, strategy.worker_index, strategy.synchronous)
        inputs = build_inputs(config, config.mode, position, config.export, share)
    models = []
    for index in range(strategy.num_towers):
        with strategy.tower_scope(index):
            models.append(build_model(config, config.mode, inputs.structure.arrange(inputs.towers[index])))
    arrived = inputs.arrived()
    lengths = [inputs.batch_length(index) for index in range(strategy.num_towers)]
    with tf.name_scope("moxing"):
        log_info, means = _log_info(models, lengths)
        samples = lengths[0] if len(lengths) == 1 else tf.add_n(lengths)
    done: list[tf.Operation] = []
    train: TrainStep | None = None
    factor, optimizer_fns = _scalable(config, models, strategy)
    guard_factor, optimizer_fns = _guard_factor(config, models, strategy, optimizer_fns)
    rates: dict[str, tf.Tensor] = {}
    summarised = training and config.summary_every and config.log_dir
    if training:
        weights = lengths if inputs.present or _differ(lengths, strategy) else [None] * len(lengths)
        towers = [
            Tower(model.losses, model.var_scopes, weight, samples=length)
            for model, weight, length in zip(models, weights, lengths, strict=True)
        ]
        # Moving averages come from the first tower; those that all workers share, from the chief's.
        updates = models[0].updates if strategy.owns_variables or not strategy.synchronous else []
        run_after(updates, arrived)
        # Log the values before the update. Without a batch there is no step, even if no loss reads the batch.
        before = [*(value.op for value in log_info.values()), *updates, *arrived]
        setup = TrainSetup(towers, optimizer_fns, before, global_step, config.max_steps, config.batch_size)
        with step_context(workers=strategy.num_workers) if strategy.num_workers > 1 else nullcontext():
            train = strategy.train_op(setup)
        done.append(train.op)
        # With several towers each has optimizers of its own, with the same rates.
        rates = learning_rates(train.optimizers[: len(models[0].losses)])
        if summarised:
            # If the updates run in a conditional branch, their rate is computed there; show the one before them.
            run_after(done, [rate.op for rate in rates.values() if tf.get_static_value(rate) is None], CONDITIONALS)
    with tf.name_scope("moxing"), strategy.local_device():
        # Of synchronous workers, only the step itself knows whether the data has ended.
        counted = done if strategy.synchronous else arrived
        ledger = Ledger(log_info, samples, counted, means if config.mode is ModeKeys.EVAL else None)
    done.append(ledger.update)
    guarded = _guarded(models) if training else {}
    return Step(
        inputs=inputs,
        models=models,
        lengths=lengths,
        strategy=strategy,
        operation=tf.group(*done, name="moxing/step"),
        ledger=ledger,
        global_step=global_step,
        checks=_checks(train, [loss for model in models for loss in model.losses], guarded) if train else Checks(),
        train=train,
        summary=_summary({**rates, **log_info}) if summarised else None,
        rate_factor=factor,
        guard_factor=guard_factor,
        rates=rates,
        probes=_probes(config, models[0], train) if train else {},
        guarded=list(guarded),
    )


def _differ(lengths: Sequence[tf.Tensor], strategy: Strategy) -> bool:
    """True if batches whose gradients are averaged in one step may have different sizes."""
    together = len(lengths) * (strategy.num_workers if strategy.synchronous else 1)
    return together > 1 and any(tf.get_static_value(length) is None for length in lengths)


def _scalable(
    config: RunConfig, models: Sequence[Model], strategy: Strategy
) -> tuple[tf.Variable | None, Sequence[Callable[..., Any]]]:
    """A factor on the learning rate for hooks that scale it, and the optimizers with that factor."""
    hooks = [hook for hook in models[0].hooks if isinstance(hook, EvaluationHook)]
    if config.inter_mode is None or not any(hook.scales_learning_rate for hook in hooks):
        return None, config.optimizer_fns
    with strategy.local_device():
        factor = rate_factor()
    return factor, [with_factor(function, factor) for function in config.optimizer_fns]


def _guard_factor(
    config: RunConfig, models: Sequence[Model], strategy: Strategy, optimizer_fns: Sequence[Callable[..., Any]]
) -> tuple[tf.Variable | None, Sequence[Callable[..., Any]]]:
    """A second factor, for `NanGuardHook`: it is independent of what evaluation hooks set."""
    if config.mode is not ModeKeys.TRAIN or not any(hook.scales_learning_rate for hook in models[0].run_hooks):
        return None, optimizer_fns
    with strategy.local_device():
        factor = rate_factor("nan_guard_factor")
    return factor, [with_factor(function, factor) for function in optimizer_fns]


def _probes(config: RunConfig, model: Model, train: TrainStep) -> dict[str, tf.Tensor]:
    with tf.name_scope("moxing/probes"):
        return {
            name: tf.cast(value, tf.float32)
            for hook in model.run_hooks
            for name, value in hook.probes(train.gradients, bool(config.log_dir)).items()
        }


def _guarded(models: Sequence[Model]) -> dict[str, tf.Tensor]:
    """The tensors that hooks check for NaN, by name; names of further towers include the tower."""
    found: dict[str, tf.Tensor] = {}
    seen: set[int] = set()
    for index, model in enumerate(models):
        for hook in model.run_hooks:
            if id(hook) not in seen:
                seen.add(id(hook))
                where = f" of tower {index}" if index else ""
                found.update({f"{name}{where}": tensor for name, tensor in hook.guarded().items()})
    return found


def _log_info(models: Sequence[Model], lengths: Sequence[tf.Tensor]) -> tuple[dict[str, tf.Tensor], dict[str, Any]]:
    """The log_info to log, that of the first tower or the mean of all; and the mean of all."""
    first = models[0].log_info
    if len(models) == 1:
        return first, first
    for index, model in enumerate(models):
        if set(model.log_info) != set(first):
            raise ValueError(
                f"model_fn returned log_info with {sorted(model.log_info)} for tower {index}, and with {sorted(first)} "
                "for the first one: every call of model_fn must build the same model."
            )
    shares = normalize_weights(lengths)
    means = {
        name: weighted_sum([tf.cast(model.log_info[name], tf.float32) for model in models], shares) for name in first
    }
    return first if FLAGS.get("log_first_clone") else means, means


def _checks(train: TrainStep, losses: list[tf.Tensor], guarded: Mapping[str, tf.Tensor]) -> Checks:
    return Checks(
        finite=_all_finite(losses),
        halt=train.halt,
        reached=train.reached,
        next_steps=train.next_steps,
        guard=_first_not_finite(list(guarded.values())) if guarded else None,
    )


def _all_finite(losses: list[tf.Tensor]) -> tf.Tensor:
    with tf.name_scope("moxing/finite"):
        checks = [tf.math.is_finite(loss) for loss in losses if loss.dtype.is_floating]
        return checks[0] if len(checks) == 1 else tf.reduce_all(tf.stack([tf.constant(True), *checks]))


def _first_not_finite(tensors: list[tf.Tensor]) -> tf.Tensor:
    """The number, from 1, of the first tensor that is not finite; 0 if all are."""
    with tf.name_scope("moxing/guard"):
        bad = tf.stack([tf.logical_not(tf.reduce_all(tf.math.is_finite(tensor))) for tensor in tensors])
        first = tf.argmax(tf.cast(bad, tf.int32), output_type=tf.int32)
        return tf.where(tf.reduce_any(bad), first + 1, tf.zeros_like(first))


def _summary(log_info: Mapping[str, tf.Tensor]) -> tf.Tensor | None:
    """Merges the user's summaries with scalars of log_info; a tag that the user writes is not written twice."""
    written = [_scalar_tag(summary.op) for summary in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    with tf.name_scope("moxing/summary"):
        for name, value in log_info.items():
            if name not in written:
                # Not tf.summary.scalar, which changes the tag if the name is taken in the graph.
                scalar = tf.raw_ops.ScalarSummary(tags=name, values=tf.cast(value, tf.float32))
                tf.add_to_collection(tf.GraphKeys.SUMMARIES, scalar)
        return tf.summary.merge_all()


def _scalar_tag(summary: tf.Operation) -> str | None:
    """The tag of a scalar summary, if it is a constant."""
    tag = tf.get_static_value(summary.inputs[0]) if summary.type == "ScalarSummary" else None
    return None if tag is None else str(tag.item(), "utf-8")

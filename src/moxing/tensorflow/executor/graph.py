"""The step of a run, built once in the run's graph: input, model, training operation, summaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.executor.checkpoint import Position
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.hooks.evaluation import EvaluationHook
from moxing.tensorflow.executor.hooks.run_hook import RunHook
from moxing.tensorflow.executor.inputs import Inputs, Share, build_inputs
from moxing.tensorflow.executor.learning_rates import learning_rates
from moxing.tensorflow.executor.ledger import Ledger
from moxing.tensorflow.executor.model import Model, build_model
from moxing.tensorflow.executor.specs import ModeKeys
from moxing.tensorflow.optimizer.rate_factor import rate_factor, with_factor
from moxing.tensorflow.optimizer.surroundings import told
from moxing.tensorflow.optimizer.wrapper import flush_op
from moxing.tensorflow.parallel import Strategy, Tower
from moxing.tensorflow.parallel.gradients import mean, shares_of
from moxing.tf1.data_seeds import data_seeds
from moxing.tf1.surgery import BRANCHES, run_after


@dataclass
class Step:
    """Everything that one step is made of.

    Attributes:
      inputs: the batch and its source.
      models: what `model_fn` returned, for every tower.
      lengths: how many samples the batch of every tower has.
      strategy: how the towers share variables and gradients.
      operation: run it and the step is done, the ledger included.
      ledger: the step's numbers.
      global_step: the counter of training steps.
      checks: what a step says of the ones to come, by name: `finite`, false when a loss is NaN or infinite; `halt` and
        `next_steps`, see `Progress`; `reached`, see `Strategy`; `guard`, the number, from 1, of a tensor of
        `guarded` that is not finite, else 0.
      summary: all summaries merged, or None.
      rate_factor: what the learning rate is multiplied with, where a hook may change it.
      guard_factor: the same, for the hook that restores checkpoints.
      rates: the learning rates in use, by tag.
      probes: scalars that are computed only when a hook asks for them, by name.
      guarded: names of tensors that must stay finite.
    """

    inputs: Inputs
    models: list[Model]
    lengths: list[tf.Tensor]
    strategy: Strategy
    operation: tf.Operation
    ledger: Ledger
    global_step: tf.Variable
    checks: dict[str, tf.Tensor]
    summary: tf.Tensor | None
    rate_factor: tf.Variable | None = None
    guard_factor: tf.Variable | None = None
    rates: dict[str, tf.Tensor] = field(default_factory=dict)
    probes: dict[str, tf.Tensor] = field(default_factory=dict)
    guarded: list[str] = field(default_factory=list)

    @property
    def model(self) -> Model:
        """The first tower's."""
        return self.models[0]


def build_step(config: RunConfig, strategy: Strategy, position: Position, seed: int) -> Step:
    """Builds the step of `config` in the current graph.

    Args:
      config: the run.
      strategy: how its towers and workers share variables and gradients.
      position: where in the data to begin.
      seed: decides the order of shuffled data, unless the script does.
    """
    training = config.mode is ModeKeys.TRAIN
    global_step = tf.train.get_or_create_global_step()
    with data_seeds(seed):
        share = Share(strategy.towers, strategy.workers, strategy.index, strategy.in_step)
        inputs = build_inputs(config, config.mode, position, config.export, share)
    models = []
    for index in range(strategy.towers):
        with strategy.tower(index):
            models.append(build_model(config, config.mode, inputs.for_model(index)))
    arrived = inputs.arrived()
    lengths = [inputs.batch_length(index) for index in range(strategy.towers)]
    with tf.name_scope("moxing"):
        log_info, means = _log_info(models, lengths)
        samples = lengths[0] if len(lengths) == 1 else tf.add_n(lengths)
    done = []
    factor, optimizer_fns = _scalable(config, models, strategy)
    guard_factor, optimizer_fns = _guard_factor(config, models, strategy, optimizer_fns)
    rates: dict[str, tf.Tensor] = {}
    summarised = training and config.summary_every and config.log_dir
    if training:
        # Moving averages come from the first tower, and where all workers share them, the chief's.
        updates = models[0].updates if strategy.owns_variables or not strategy.in_step else []
        run_after(updates, arrived)
        # What is logged is of before the update. And without a batch there is no step, also where a loss does not
        # look at it.
        before = [*(value.op for value in log_info.values()), *updates, *arrived]
        weights = lengths if inputs.present or _differ(lengths, strategy) else [None] * len(lengths)
        towers = [
            Tower(model.losses, model.var_scopes, weight, samples=length)
            for model, weight, length in zip(models, weights, lengths, strict=True)
        ]
        strategy.max_steps, strategy.batch_size = config.max_steps, config.batch_size
        with told(workers=strategy.workers):
            done.append(strategy.train_op(towers, optimizer_fns, before, global_step))
        strategy.flush = flush_op(strategy.optimizers)
        # With several towers all have optimizers, of the same rates.
        rates = learning_rates(strategy.optimizers[: len(models[0].losses)])
        if summarised:
            # Where the updates stand in a branch, so does their own rate: what is shown is of before them as well.
            run_after(done, [rate.op for rate in rates.values() if tf.get_static_value(rate) is None], BRANCHES)
    with tf.name_scope("moxing"), strategy.local():
        # Where the workers go in step, only the step itself tells whether the data has ended.
        counted = done if strategy.in_step else arrived
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
        checks=_checks(strategy, [loss for model in models for loss in model.losses], guarded) if training else {},
        summary=_summary({**rates, **log_info}) if summarised else None,
        rate_factor=factor,
        guard_factor=guard_factor,
        rates=rates,
        probes=_probes(config, models[0], strategy) if training else {},
        guarded=list(guarded),
    )


def _differ(lengths: Sequence[tf.Tensor], strategy: Strategy) -> bool:
    """Whether batches whose gradients are added up in one step may have different sizes."""
    together = len(lengths) * (strategy.workers if strategy.in_step else 1)
    return together > 1 and any(tf.get_static_value(length) is None for length in lengths)


def _scalable(
    config: RunConfig, models: Sequence[Model], strategy: Strategy
) -> tuple[tf.Variable | None, Sequence[Callable[..., Any]]]:
    """The factor of the learning rate, where a hook may change it, and the optimizers with it."""
    hooks = [hook for hook in models[0].hooks if isinstance(hook, EvaluationHook)]
    if config.inter_mode is None or not any(hook.scales_learning_rate for hook in hooks):
        return None, config.optimizer_fns
    with strategy.local():
        factor = rate_factor()
    return factor, [with_factor(function, factor) for function in config.optimizer_fns]


def _guard_factor(
    config: RunConfig, models: Sequence[Model], strategy: Strategy, optimizer_fns: Sequence[Callable[..., Any]]
) -> tuple[tf.Variable | None, Sequence[Callable[..., Any]]]:
    """A factor of its own for the hook that goes back to checkpoints: what others set is not its business."""
    hooks = [hook for hook in models[0].hooks if isinstance(hook, RunHook)]
    if config.mode is not ModeKeys.TRAIN or not any(hook.scales_learning_rate for hook in hooks):
        return None, optimizer_fns
    with strategy.local():
        factor = rate_factor("nan_guard_factor")
    return factor, [with_factor(function, factor) for function in optimizer_fns]


def _probes(config: RunConfig, model: Model, strategy: Strategy) -> dict[str, tf.Tensor]:
    with tf.name_scope("moxing/probes"):
        return {
            name: tf.cast(value, tf.float32)
            for hook in model.hooks
            if isinstance(hook, RunHook)
            for name, value in hook.probes(strategy.applied, bool(config.log_dir)).items()
        }


def _guarded(models: Sequence[Model]) -> dict[str, tf.Tensor]:
    """What hooks of all towers watch; the name says the tower where there are several."""
    found: dict[str, tf.Tensor] = {}
    seen: set[int] = set()
    for index, model in enumerate(models):
        for hook in model.hooks:
            if isinstance(hook, RunHook) and id(hook) not in seen:
                seen.add(id(hook))
                where = f" of tower {index}" if index else ""
                found.update({f"{name}{where}": tensor for name, tensor in hook.guarded().items()})
    return found


def _log_info(models: Sequence[Model], lengths: Sequence[tf.Tensor]) -> tuple[dict[str, tf.Tensor], dict[str, Any]]:
    """What is printed of log_info, the first tower's or the mean of all; and the mean of all."""
    first = models[0].log_info
    if len(models) == 1:
        return first, first
    for index, model in enumerate(models):
        if set(model.log_info) != set(first):
            raise ValueError(
                f"model_fn returned log_info with {sorted(model.log_info)} for tower {index}, and with {sorted(first)} "
                "for the first one: every call of model_fn must build the same model."
            )
    shares = shares_of(lengths)
    means = {name: mean([tf.cast(model.log_info[name], tf.float32) for model in models], shares) for name in first}
    return first if FLAGS.get("log_first_clone") else means, means


def _checks(strategy: Strategy, losses: list[tf.Tensor], guarded: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    said = {"halt": strategy.halt, "reached": strategy.reached, "next_steps": strategy.next_steps}
    said["guard"] = _first_not_finite(list(guarded.values())) if guarded else None
    return {"finite": _all_finite(losses), **{name: value for name, value in said.items() if value is not None}}


def _all_finite(losses: list[tf.Tensor]) -> tf.Tensor:
    with tf.name_scope("moxing/finite"):
        checks = [tf.math.is_finite(loss) for loss in losses if loss.dtype.is_floating]
        return checks[0] if len(checks) == 1 else tf.reduce_all(tf.stack([tf.constant(True), *checks]))


def _first_not_finite(tensors: list[tf.Tensor]) -> tf.Tensor:
    """Its number from 1; 0 where all are finite."""
    with tf.name_scope("moxing/guard"):
        bad = tf.stack([tf.logical_not(tf.reduce_all(tf.math.is_finite(tensor))) for tensor in tensors])
        first = tf.argmax(tf.cast(bad, tf.int32), output_type=tf.int32)
        return tf.where(tf.reduce_any(bad), first + 1, tf.zeros_like(first))


def _summary(log_info: Mapping[str, tf.Tensor]) -> tf.Tensor | None:
    """Merges the user's summaries and scalars by name; a tag that the user writes himself stays his."""
    written = [_scalar_tag(summary.op) for summary in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    with tf.name_scope("moxing/summary"):
        for name, value in log_info.items():
            if name not in written:
                # tf.summary.scalar would make the tag from a name that is still free in the graph.
                scalar = tf.raw_ops.ScalarSummary(tags=name, values=tf.cast(value, tf.float32))
                tf.add_to_collection(tf.GraphKeys.SUMMARIES, scalar)
        return tf.summary.merge_all()


def _scalar_tag(summary: tf.Operation) -> str | None:
    """The tag of a scalar summary, where the graph tells it."""
    tag = tf.get_static_value(summary.inputs[0]) if summary.type == "ScalarSummary" else None
    return None if tag is None else str(tag.item(), "utf-8")

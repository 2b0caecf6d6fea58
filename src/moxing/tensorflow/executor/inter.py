"""The branch of the graph for `inter_mode`: another input and the model in that mode, on the training's variables."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.graph import Step
from moxing.tensorflow.executor.hooks.evaluation import EvaluationHook
from moxing.tensorflow.executor.hooks.feed import FeedSessionRunHook
from moxing.tensorflow.executor.inputs import Inputs, build_inputs
from moxing.tensorflow.executor.ledger import Ledger
from moxing.tensorflow.executor.loop import SECONDS_PER_CALL, Progress, Stepper, make_stepper
from moxing.tensorflow.executor.model import build_model
from moxing.tensorflow.executor.signals import StopSignal
from moxing.tensorflow.optimizer.ema import average_in
from moxing.tf1.data_seeds import data_seeds
from moxing.tf1.variables import saved_name


@dataclass
class Inter:
    """The branch, ready to be run.

    Attributes:
      inputs: its data.
      stepper: does its steps, one batch each.
      restart: operations that begin it anew.
      limit: fed to `restart`: how many samples to take, -1 for all.
      hooks: the hooks that it serves.
      others: hooks of the user that look at it with every training step.
      feeds: what its placeholders are fed.
      batch_size: samples per batch, None where that is not known.
    """

    inputs: Inputs
    stepper: Stepper
    restart: list[tf.Operation]
    limit: tf.Tensor
    hooks: list[EvaluationHook]
    others: list[tf.train.SessionRunHook]
    feeds: dict[Any, Any]
    batch_size: int | None


def refuse_in_cluster(config: RunConfig, is_cluster: bool) -> None:
    """Raises, in all processes and before any of them waits for another, where there would be an evaluation."""
    if is_cluster and config.inter_mode is not None:
        raise NotImplementedError(
            f"mox.run(inter_mode={config.inter_mode.value!r}): an evaluation inside the training of a cluster is not "
            "available in this version. Leave inter_mode out, and evaluate the checkpoints in a job of their own."
        )


def build_inter(config: RunConfig, step: Step, seed: int) -> Inter | None:
    """Builds the branch behind the training step; None where `mox.run` was given no `inter_mode`.

    Args:
      config: the run.
      step: the training step.
      seed: decides the order of shuffled data, unless the script does.
    """
    if config.inter_mode is None:
        return None
    scope = f"inter_{config.inter_mode.value.lower()}"
    with tf.name_scope(scope):
        limit = tf.placeholder_with_default(tf.constant(-1, tf.int64), [], name="samples")
        with data_seeds(seed):
            inputs = build_inputs(config, config.inter_mode, limit=limit)
    if not inputs.initializers:
        raise ValueError(
            f"input_fn in mode {config.inter_mode.value} is made of queues or placeholders, which cannot begin anew "
            "for every evaluation: use tf.data there."
        )
    with step.strategy.beside(scope, _evaluated_instead()) as own:
        model = build_model(config, config.inter_mode, inputs.for_model())
    hooks = [hook for hook in model.hooks if _wants_inter(hook)]
    serving = [hook for hook in hooks if isinstance(hook, EvaluationHook)]
    if not hooks:
        tf.logging.warning(
            "mox.run(inter_mode=%r): model_fn returned no hook that uses it in that mode, such as "
            "mox.LogEvaluationMetricHook.",
            config.inter_mode.value,
        )
    lengths = [inputs.batch_length()]
    with tf.variable_scope(scope), tf.name_scope("moxing"), step.strategy.local():
        ledger = Ledger(metrics := monitored(serving), lengths[0], inputs.arrived(), metrics)
    evaluation = replace(
        step, inputs=inputs, models=[model], lengths=lengths, operation=ledger.update, ledger=ledger, checks={},
        summary=None, probes={},
    )  # fmt: skip
    # What the model counts by itself, such as tf.metrics, begins anew as well.
    counters = [variable.initializer for variable in own]
    feeds: dict[Any, Any] = {}
    for hook in model.hooks:
        if isinstance(hook, FeedSessionRunHook):
            feeds.update(hook.feed_dict)
    return Inter(
        inputs,
        make_stepper(evaluation, every_step=False),
        restart=[*inputs.initializers, *ledger.initializers, *counters],
        limit=limit,
        hooks=serving,
        others=[hook for hook in hooks if not isinstance(hook, EvaluationHook)],
        feeds=feeds,
        batch_size=config.batch_size if config.batches else None,
    )


def _evaluated_instead() -> Callable[[tf.Variable], tf.Variable]:
    """As EVAL does it: where the optimizer keeps averages of the weights, they are what is evaluated."""
    variables = {saved_name(variable): variable for variable in tf.global_variables()}

    def instead(variable: tf.Variable) -> tf.Variable:
        name = average_in(variables, variable)
        return variables[name] if name is not None and variables[name].dtype == variable.dtype else variable

    return instead


def monitored(hooks: Sequence[EvaluationHook]) -> dict[str, tf.Tensor]:
    """What all hooks look at, by number of the hook and name."""
    return {f"{number}/{name}": value for number, hook in enumerate(hooks) for name, value in hook.monitor_info.items()}


def without_inter(hooks: Sequence[Any]) -> list[Any]:
    """The hooks that do not want the `inter_mode` graph."""
    return [hook for hook in hooks if not _wants_inter(hook)]


def _wants_inter(hook: Any) -> bool:
    return hasattr(hook, "run_inter_mode") and bool(hook.run_inter_mode())


class Evaluator:
    """Runs the branch from the start of its data.

    Args:
      inter: the branch.
      session: where.
      stop: ends an evaluation early.
    """

    def __init__(self, inter: Inter, session: tf.Session, stop: StopSignal) -> None:
        self._inter, self._session, self._stop = inter, session, stop
        self._seconds_per_step: float | None = None

    def run(self, samples: int | None) -> list[dict[str, float]] | None:
        """For every hook the means of its metrics over `samples` samples, None for all; None when a signal came."""
        inter = self._inter
        if samples is None and inter.inputs.endless:
            raise ValueError(
                "The data of input_fn in inter_mode never ends: give samples_in_eval, the number of samples that an "
                "evaluation takes."
            )
        self._session.run(inter.restart, {inter.limit: -1 if samples is None else samples})
        progress, steps = inter.stepper.current(self._session), 0
        needed = -(-samples // inter.batch_size) if samples is not None and inter.batch_size else None
        while not progress.ended and (needed is None or steps < needed):
            if self._stop.number is not None:
                return None
            progress = self._advance(progress, needed)
            steps = progress.ledger.steps
        if not progress.ledger.samples:
            raise ValueError("input_fn gave no data at all in inter_mode: its data set ended before the first batch.")
        return self._by_hook(progress.ledger.means)

    def _advance(self, before: Progress, needed: int | None) -> Progress:
        count = 1 if self._seconds_per_step is None else max(1, int(SECONDS_PER_CALL / self._seconds_per_step))
        done = before.ledger.steps
        count = count if needed is None else min(count, needed - done)
        started = time.perf_counter()
        try:
            progress = self._inter.stepper.advance(
                lambda fetches, feed=None: self._session.run(fetches, {**self._inter.feeds, **(feed or {})}), count
            )
        except tf.errors.OutOfRangeError:
            return self._inter.stepper.current(self._session, ended=True)
        if done:  # the first step of an evaluation waits for its data
            self._seconds_per_step = (time.perf_counter() - started) / max(progress.ledger.steps - done, 1)
        elif self._seconds_per_step is None:
            self._seconds_per_step = time.perf_counter() - started
        return progress

    def _by_hook(self, means: Mapping[str, float]) -> list[dict[str, float]]:
        return [
            {name: means[f"{number}/{name}"] for name in hook.monitor_info}
            for number, hook in enumerate(self._inter.hooks)
        ]

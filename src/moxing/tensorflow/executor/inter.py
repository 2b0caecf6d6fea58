"""The branches of the graph for `inter_mode`: another input and the model in that mode, on the training's variables.

There is one for the data of `mox.run`'s `input_fn`, and one for every `input_fn` that hooks bring along.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.graph import Step
from moxing.tensorflow.executor.hooks.evaluation import EvaluationHook
from moxing.tensorflow.executor.hooks.feed import FeedSessionRunHook
from moxing.tensorflow.executor.inputs import EVERYTHING, Inputs, Share, build_inputs, part_of
from moxing.tensorflow.executor.ledger import Ledger
from moxing.tensorflow.executor.loop import SECONDS_PER_CALL, Progress, Stepper, make_stepper
from moxing.tensorflow.executor.model import build_model
from moxing.tensorflow.executor.signals import StopSignal
from moxing.tensorflow.executor.specs import ModeKeys
from moxing.tensorflow.optimizer.ema import average_in
from moxing.tf1.data_seeds import data_seeds
from moxing.tf1.variables import saved_name


@dataclass
class Inter:
    """A branch, ready to be run.

    Attributes:
      scope: its name.
      inputs: its data.
      share: which part of them this worker takes.
      stepper: does its steps, one batch each.
      restart: operations that begin it anew.
      limit: fed to `restart`: how many samples all workers take, -1 for all.
      hooks: the hooks that it serves, by their places among the evaluating hooks of `model_fn`.
      others: hooks of the user that look at it with every training step.
      feeds: what its placeholders are fed.
      batch_size: samples per batch, None where that is not known.
    """

    scope: str
    inputs: Inputs
    share: Share
    stepper: Stepper
    restart: list[tf.Operation]
    limit: tf.Tensor
    hooks: dict[int, EvaluationHook]
    others: list[tf.train.SessionRunHook]
    feeds: dict[Any, Any]
    batch_size: int | None


def build_inters(config: RunConfig, step: Step, seed: int) -> list[Inter]:
    """Builds the branches behind the training step; none where `mox.run` was given no `inter_mode`.

    Args:
      config: the run.
      step: the training step.
      seed: decides the order of shuffled data, unless the script does.
    """
    if config.inter_mode is None:
        return []
    scope = f"inter_{config.inter_mode.value.lower()}"
    first = _build(config, config.inter_mode, step, seed, scope)
    if not first.hooks and not first.others:
        tf.logging.warning(
            "mox.run(inter_mode=%r): model_fn returned no hook that uses it in that mode, such as "
            "mox.LogEvaluationMetricHook.",
            config.inter_mode.value,
        )
    _warn_of_hooks(config, step, first)
    # By identity: two functions may be equal in everything but the data that they close over.
    sets = {id(hook.input_fn): hook.input_fn for hook in first.hooks.values() if hook.input_fn is not None}
    places = {key: [place for place, hook in first.hooks.items() if id(hook.input_fn) == key] for key in sets}
    inters = [_serving(first, [place for place, hook in first.hooks.items() if hook.input_fn is None])]
    for number, (key, input_fn) in enumerate(sets.items(), 1):
        try:
            inter = _build(replace(config, input_fn=input_fn), config.inter_mode, step, seed, f"{scope}_{number}")
        except ValueError as error:
            kind = type(first.hooks[places[key][0]]).__name__
            raise ValueError(
                f"{kind}(input_fn={getattr(input_fn, '__name__', input_fn)}): the model cannot be built on its data, "
                f"which must be like those of mox.run's input_fn. {error}"
            ) from error
        if set(inter.hooks) != set(first.hooks):
            raise ValueError(
                f"model_fn returned {len(inter.hooks)} hooks that evaluate for the data of one of them, and "
                f"{len(first.hooks)} for those of mox.run's input_fn: every call must return the same hooks."
            )
        inters.append(replace(_serving(inter, places[key]), others=[]))
    return inters


def _warn_of_hooks(config: RunConfig, step: Step, inter: Inter) -> None:
    """Tells of what hooks were probably not meant to do."""
    evaluating = [type(hook).__name__ for hook in step.model.hooks if isinstance(hook, EvaluationHook)]
    there = [type(hook).__name__ for hook in inter.hooks.values()]
    if missing := [name for name in evaluating if name not in there]:
        tf.logging.warning(
            "model_fn returned %s in mode TRAIN only: hooks that evaluate are those of mode %s.",
            missing[0],
            config.inter_mode,
        )
    strategy = step.strategy
    taken = (config.batch_size or 0) * strategy.towers * (strategy.workers if strategy.in_step else 1)
    for hook in inter.hooks.values():
        if taken and hook.batch_size != taken:
            tf.logging.warning(
                "%s(batch_size=%d): a training step takes %d samples (batch_size times the towers, and the workers "
                "that go in step); the evaluation comes every %d steps all the same.",
                type(hook).__name__,
                hook.batch_size,
                taken,
                hook.period,
            )


def _serving(inter: Inter, places: Sequence[int]) -> Inter:
    return replace(inter, hooks={place: inter.hooks[place] for place in places})


def _build(config: RunConfig, mode: ModeKeys, step: Step, seed: int, scope: str) -> Inter:
    """One branch, for all hooks that `model_fn` returns."""
    strategy = step.strategy
    # Workers that go in step evaluate together, each a part of the data. Else the chief evaluates alone.
    share = Share(workers=strategy.workers, index=strategy.index) if strategy.in_step else EVERYTHING
    with tf.name_scope(scope):
        limit = tf.placeholder_with_default(tf.constant(-1, tf.int64), [], name="samples")
        with data_seeds(seed):
            inputs = build_inputs(config, mode, share=share, limit=limit)
    if not inputs.initializers:
        raise ValueError(
            f"input_fn in mode {mode.value} is made of queues or placeholders, which cannot begin anew "
            "for every evaluation: use tf.data there."
        )
    with strategy.beside(scope, _evaluated_instead()) as own:
        model = build_model(config, mode, inputs.for_model())
    hooks = [hook for hook in model.hooks if _wants_inter(hook)]
    serving = dict(enumerate(hook for hook in hooks if isinstance(hook, EvaluationHook)))
    lengths = [inputs.batch_length()]
    with tf.variable_scope(scope), tf.name_scope("moxing"), strategy.local():
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
        scope,
        inputs,
        share,
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


def monitored(hooks: Mapping[int, EvaluationHook]) -> dict[str, tf.Tensor]:
    """What all hooks look at, by place of the hook and name."""
    return {f"{place}/{name}": value for place, hook in hooks.items() for name, value in hook.monitor_info.items()}


def without_inter(hooks: Sequence[Any]) -> list[Any]:
    """The hooks that do not want the `inter_mode` graph."""
    return [hook for hook in hooks if not _wants_inter(hook)]


def _wants_inter(hook: Any) -> bool:
    return hasattr(hook, "run_inter_mode") and bool(hook.run_inter_mode())


class Evaluator:
    """Runs a branch from the start of its data; where workers share them, the means are those of all.

    Args:
      inter: the branch.
      session: where.
      stop: ends an evaluation early.
      everyones: asks all workers that evaluate with this one: what all of them say, by name and what this one says.
    """

    def __init__(
        self, inter: Inter, session: tf.Session, stop: StopSignal, everyones: Callable[[str, Any], list[Any]]
    ) -> None:
        self._inter, self._session, self._stop, self._everyones = inter, session, stop, everyones
        self._seconds_per_step: float | None = None
        self._count = 0
        self._warned = False

    def run(self, samples: int | None) -> dict[int, dict[str, float]] | None:
        """By place of the hook the means of its metrics over `samples` samples, None for all; None after a signal."""
        if samples is None and self._inter.inputs.endless:
            raise ValueError(
                "The data of input_fn in inter_mode never ends: give samples_in_eval, the number of samples that an "
                "evaluation takes."
            )
        self._count += 1
        parts = self._everyones(f"{self._inter.scope}/{self._count}", self._own_part(samples))
        if not all(parts):
            # One of the workers was sent a signal, and all leave as that one does.
            self._stop.number = self._stop.number or signal.SIGTERM
            return None
        total = sum(part["samples"] for part in parts)
        if samples is not None and total < samples and not self._warned:
            self._warned = True
            tf.logging.warning(
                "samples_in_eval is %d, and the data of input_fn in inter_mode has %d samples: all are taken.",
                samples,
                total,
            )
        if not total:
            raise ValueError("input_fn gave no data at all in inter_mode: its data set ended before the first batch.")
        with_data = [part for part in parts if part["samples"]]
        return {
            place: {
                name: sum(part["means"][f"{place}/{name}"] * (part["samples"] / total) for part in with_data)
                for name in hook.monitor_info
            }
            for place, hook in self._inter.hooks.items()
        }

    def _own_part(self, samples: int | None) -> dict[str, Any]:
        """Samples and means of this worker's part of the data; nothing when a signal came."""
        inter = self._inter
        self._session.run(inter.restart, {inter.limit: -1 if samples is None else samples})
        progress, steps = inter.stepper.current(self._session), 0
        batch_size = inter.batch_size
        needed = -(-part_of(samples, inter.share) // batch_size) if samples is not None and batch_size else None
        while not progress.ended and (needed is None or steps < needed):
            if self._stop.number is not None:
                return {}
            progress = self._advance(progress, needed)
            steps = progress.ledger.steps
        return {"samples": progress.ledger.samples, "means": progress.ledger.means}

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

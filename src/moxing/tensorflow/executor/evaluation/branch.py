"""The evaluation branches of a training graph: the model in `inter_mode`, on the variables of the training.

There is one branch for the `input_fn` of `mox.run`, and one for every `input_fn` of a hook.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.build.inputs import EVERYTHING, Inputs, Share, build_inputs
from moxing.tensorflow.executor.build.ledger import Ledger
from moxing.tensorflow.executor.build.model import build_model
from moxing.tensorflow.executor.build.step import Checks, Step
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.hooks.evaluation import EvaluationHook
from moxing.tensorflow.executor.hooks.feed import FeedSessionRunHook
from moxing.tensorflow.executor.hooks.user_hooks import UserHooks, wants_branch
from moxing.tensorflow.executor.loop.step_loop import Stepper, make_stepper
from moxing.tensorflow.executor.specs import ModeKeys
from moxing.tensorflow.optimizer.wrappers.ema import average_in
from moxing.tf1.graph.data_seeds import data_seeds
from moxing.tf1.graph.variables import saved_name


@dataclass
class Branch:
    """An evaluation branch.

    Attributes:
      scope: the name scope.
      inputs: the data.
      share: the shard of the data that this worker reads.
      stepper: runs the steps, one batch each.
      restart: operations that reset the data and all counters.
      limit: fed to `restart`: the number of samples that all workers read together, -1 for all.
      hooks: the evaluation hooks that the branch serves, by their index among those of `model_fn`.
      others: the user's own hooks, run on the branch after every training step.
      feeds: values for placeholders.
      batch_size: samples per batch, None if unknown.
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


@dataclass(frozen=True)
class Evaluation:
    """All evaluation branches of a training.

    Attributes:
      branches: the branches; the first one reads the `input_fn` of `mox.run`.
      hooks: the hooks of all branches.
    """

    branches: Sequence[Branch]
    hooks: UserHooks


def build_evaluation(config: RunConfig, step: Step, seed: int) -> Evaluation:
    """Builds the branches of a run whose `inter_mode` is set.

    Args:
      config: the arguments of the run.
      step: the training step.
      seed: the shuffle seed, unless the script sets one.
    """
    mode = config.inter_mode
    if mode is None:
        raise ValueError("inter_mode is not set.")
    scope = f"inter_{mode.value.lower()}"
    first = _build(config, mode, step, seed, scope)
    if not first.hooks and not first.others:
        tf.logging.warning(
            "mox.run(inter_mode=%r): model_fn returned no hook that uses it in that mode, such as "
            "mox.LogEvaluationMetricHook.",
            mode.value,
        )
    _warn_of_mistakes(config, step, first)
    # By identity: equal functions may close over different data.
    sets = {id(hook.input_fn): hook.input_fn for hook in first.hooks.values() if hook.input_fn is not None}
    indices = {key: [index for index, hook in first.hooks.items() if id(hook.input_fn) == key] for key in sets}
    branches = [_serving(first, [index for index, hook in first.hooks.items() if hook.input_fn is None])]
    for number, (key, input_fn) in enumerate(sets.items(), 1):
        try:
            branch = _build(replace(config, input_fn=input_fn), mode, step, seed, f"{scope}_{number}")
        except ValueError as error:
            kind = type(first.hooks[indices[key][0]]).__name__
            raise ValueError(
                f"{kind}(input_fn={getattr(input_fn, '__name__', input_fn)}): the model cannot be built on its data, "
                f"which must have the structure of those of mox.run's input_fn. {error}"
            ) from error
        if set(branch.hooks) != set(first.hooks):
            raise ValueError(
                f"model_fn returned {len(branch.hooks)} evaluation hooks for the input_fn of a hook, and "
                f"{len(first.hooks)} for that of mox.run: every call must return the same hooks."
            )
        branches.append(replace(_serving(branch, indices[key]), others=[]))
    hooks = [hook for branch in branches for hook in (*branch.hooks.values(), *branch.others)]
    return Evaluation(branches, UserHooks(hooks, inter=True))


def _warn_of_mistakes(config: RunConfig, step: Step, branch: Branch) -> None:
    """Warns of settings that are probably mistakes."""
    evaluating = [type(hook).__name__ for hook in step.model.hooks if isinstance(hook, EvaluationHook)]
    there = [type(hook).__name__ for hook in branch.hooks.values()]
    if missing := [name for name in evaluating if name not in there]:
        tf.logging.warning(
            "model_fn returned %s in mode TRAIN only: return evaluation hooks in mode %s.",
            missing[0],
            config.inter_mode,
        )
    strategy = step.strategy
    taken = (config.batch_size or 0) * strategy.num_towers * (strategy.num_workers if strategy.synchronous else 1)
    for hook in branch.hooks.values():
        if taken and hook.batch_size != taken:
            tf.logging.warning(
                "%s(batch_size=%d): a training step takes %d samples (batch_size x towers x synchronous workers); "
                "the evaluation still runs every %d steps.",
                type(hook).__name__,
                hook.batch_size,
                taken,
                hook.period,
            )


def _serving(branch: Branch, indices: Sequence[int]) -> Branch:
    return replace(branch, hooks={index: branch.hooks[index] for index in indices})


def _build(config: RunConfig, mode: ModeKeys, step: Step, seed: int, scope: str) -> Branch:
    """Builds one branch, for all hooks that `model_fn` returns."""
    strategy = step.strategy
    # Synchronous workers evaluate together, each a shard of the data. Else the chief evaluates alone.
    share = Share(workers=strategy.num_workers, index=strategy.worker_index) if strategy.synchronous else EVERYTHING
    with tf.name_scope(scope):
        limit = tf.placeholder_with_default(tf.constant(-1, tf.int64), [], name="samples")
        with data_seeds(seed):
            inputs = build_inputs(config, mode, share=share, limit=limit)
    if not inputs.initializers:
        raise ValueError(
            f"input_fn in mode {mode.value} uses queues or placeholders, which cannot restart "
            "for every evaluation: use tf.data there."
        )
    with strategy.evaluation_scope(scope, _evaluated_instead()) as own:
        model = build_model(config, mode, inputs.structure.arrange(inputs.towers[0]))
    hooks = [hook for hook in model.hooks if wants_branch(hook)]
    serving = dict(enumerate(hook for hook in hooks if isinstance(hook, EvaluationHook)))
    lengths = [inputs.batch_length()]
    with tf.variable_scope(scope), tf.name_scope("moxing"), strategy.local_device():
        ledger = Ledger(metrics := monitored(serving), lengths[0], inputs.arrived(), metrics)
    evaluation = replace(
        step, inputs=inputs, models=[model], lengths=lengths, operation=ledger.update, ledger=ledger,
        checks=Checks(),
        summary=None, probes={},
    )  # fmt: skip
    # Reset what the model counts by itself, such as tf.metrics.
    counters = [variable.initializer for variable in own]
    feeds: dict[Any, Any] = {}
    for hook in model.hooks:
        if isinstance(hook, FeedSessionRunHook):
            feeds.update(hook.feed_dict)
    return Branch(
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
    """Evaluates the moving averages of the weights where the optimizer keeps them, as EVAL does."""
    variables = {saved_name(variable): variable for variable in tf.global_variables()}

    def instead(variable: tf.Variable) -> tf.Variable:
        name = average_in(variables, variable)
        return variables[name] if name is not None and variables[name].dtype == variable.dtype else variable

    return instead


def monitored(hooks: Mapping[int, EvaluationHook]) -> dict[str, tf.Tensor]:
    """The metrics of all hooks, by index of the hook and name."""
    return {f"{index}/{name}": value for index, hook in hooks.items() for name, value in hook.monitor_info.items()}

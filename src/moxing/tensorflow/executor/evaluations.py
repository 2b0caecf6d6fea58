"""What a run does in `inter_mode`, put together."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor import checkpoint
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.graph import Step
from moxing.tensorflow.executor.hooks.action import Action
from moxing.tensorflow.executor.hooks.best_checkpoint import check_directories
from moxing.tensorflow.executor.hooks.evaluate import EvaluateAction, RunControl
from moxing.tensorflow.executor.hooks.evaluation_summaries import EvaluationSummaries
from moxing.tensorflow.executor.hooks.inter_user import InterUserAction
from moxing.tensorflow.executor.hooks.log import LogAction, RateAction
from moxing.tensorflow.executor.hooks.save import SaveAction
from moxing.tensorflow.executor.hooks.throughput import ThroughputAction
from moxing.tensorflow.executor.hooks.user_hooks import UserHooks
from moxing.tensorflow.executor.inter import Evaluator, Inter
from moxing.tensorflow.executor.signals import StopSignal


def evaluations(
    inter: Inter,
    config: RunConfig,
    step: Step,
    keeper: checkpoint.Keeper | None,
    others: Sequence[Action],
    session: tf.Session,
    hooks: UserHooks,
    beside: UserHooks,
    stop: StopSignal,
) -> list[Action]:
    """The actions that use the `inter_mode` graph.

    Args:
      inter: that graph.
      config: the run.
      step: the training step.
      keeper: writes checkpoints, where there are any.
      others: the run's other actions.
      session: where.
      hooks: the hooks of the training.
      beside: those of the `inter_mode` graph.
      stop: says whether a signal came.
    """
    beside.after_create_session(session, tf.train.Coordinator())
    actions: list[Action] = [InterUserAction(inter, beside, hooks, session)]
    if not inter.hooks:
        return actions
    if config.log_dir is None and any(hook.keeps_best for hook in inter.hooks):
        raise ValueError("restore_best=True needs mox.run(log_dir=...): the best variables are kept there.")
    check_directories(inter.hooks)

    def changed() -> None:
        for action in others:
            if isinstance(action, SaveAction):
                action.changed()

    def pause(seconds: float) -> None:
        for action in others:
            if isinstance(action, LogAction | RateAction | ThroughputAction):
                action.pause(seconds)

    control = RunControl(
        session,
        config.log_dir,
        step.rate_factor,
        step.strategy.ready(),
        end=hooks.request_stop,
        changed=changed,
        by_signal=lambda: stop.number is not None,
    )
    summaries = None
    if config.log_dir and config.summary_every and config.inter_mode is not None:
        summaries = EvaluationSummaries(config.log_dir, config.inter_mode.value.lower(), inter.hooks)
    evaluate = EvaluateAction(inter.hooks, Evaluator(inter, session, stop).run, control, pause, summaries)
    if keeper is not None:
        keeper.hook_states = evaluate.states
    return [evaluate, *actions]


def resume_evaluations(actions: Sequence[Action], source: checkpoint.Source | None, done: int) -> None:
    """Gives hooks back what they remembered when the checkpoint was written.

    Args:
      actions: the run's.
      source: the checkpoint that the run begins with.
      done: training steps done.
    """
    for action in actions:
        if isinstance(action, EvaluateAction):
            action.resume(source.position.hooks if source is not None and source.resume else {}, done)

"""What a run does in `inter_mode`, put together."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor import checkpoint
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.graph import Step
from moxing.tensorflow.executor.hooks.action import Action
from moxing.tensorflow.executor.hooks.best_checkpoint import check_directories
from moxing.tensorflow.executor.hooks.evaluate import EvaluateAction, FollowAction, RunControl
from moxing.tensorflow.executor.hooks.evaluation_summaries import EvaluationSummaries
from moxing.tensorflow.executor.hooks.inter_user import InterUserAction
from moxing.tensorflow.executor.hooks.log import LogAction, RateAction
from moxing.tensorflow.executor.hooks.save import SaveAction
from moxing.tensorflow.executor.hooks.throughput import ThroughputAction
from moxing.tensorflow.executor.hooks.user_hooks import UserHooks
from moxing.tensorflow.executor.inter import Evaluator, Inter
from moxing.tensorflow.executor.job import Job
from moxing.tensorflow.executor.signals import StopSignal


def evaluations(
    inters: Sequence[Inter],
    config: RunConfig,
    step: Step,
    job: Job,
    keeper: checkpoint.Keeper | None,
    others: Sequence[Action],
    session: tf.Session,
    hooks: UserHooks,
    beside: UserHooks,
    stop: StopSignal,
) -> list[Action]:
    """The actions that use the `inter_mode` graphs.

    Args:
      inters: those graphs.
      config: the run.
      step: the training step.
      job: the processes that take part.
      keeper: writes checkpoints, where there are any.
      others: the run's other actions.
      session: where.
      hooks: the hooks of the training.
      beside: those of the `inter_mode` graphs.
      stop: says whether a signal came.
    """
    beside.after_create_session(session, tf.train.Coordinator())
    actions: list[Action] = [InterUserAction(inters[0], beside, hooks, session)]
    by_place = {place: hook for inter in inters for place, hook in inter.hooks.items()}
    evaluating = [by_place[place] for place in sorted(by_place)]
    if not evaluating:
        return actions
    keeping = [type(hook).__name__ for hook in evaluating if hook.keeps_best]
    if keeping and config.log_dir is None and job.role.is_chief:
        raise ValueError(f"{keeping[0]} keeps the best variables in log_dir: give mox.run(log_dir=...).")
    check_directories(evaluating)

    def changed() -> None:
        for action in others:
            if isinstance(action, SaveAction):
                action.changed()

    def pause(seconds: float) -> None:
        for action in others:
            if isinstance(action, LogAction | RateAction | ThroughputAction):
                action.pause(seconds)

    # Workers that go in step all evaluate, see the same means and so decide alike. Else the chief does it for all.
    apart = job.is_cluster and not step.strategy.in_step
    leads = apart and job.role.is_chief
    control = RunControl(
        session,
        config.log_dir,
        step.rate_factor,
        step.strategy.ready(),
        end=lambda: hooks.request_stop(by_all=not apart),
        changed=changed,
        by_signal=lambda: stop.number is not None,
        announce=job.announce if leads else lambda _: None,
    )
    if apart and not leads:
        return [FollowAction(control, job.announced), *actions]
    asked = job.everyones if not apart else lambda _, own: [own]
    sets = [(inter.hooks, Evaluator(inter, session, stop, asked).run) for inter in inters]
    summaries = None
    if config.log_dir and config.summary_every and config.inter_mode is not None:
        summaries = EvaluationSummaries(config.log_dir, config.inter_mode.value.lower(), evaluating)
    evaluate = EvaluateAction(sets, control, pause, summaries, apart)
    if keeper is not None:
        keeper.hook_states = evaluate.states
    return [evaluate, *actions]


def resume_evaluations(actions: Sequence[Action], position: checkpoint.Position, done: int) -> None:
    """Gives hooks back what they remembered when the checkpoint was written.

    Args:
      actions: the run's.
      position: where the run begins, with what hooks remembered.
      done: training steps done.
    """
    for action in actions:
        if isinstance(action, EvaluateAction):
            action.resume(position.hooks, done)

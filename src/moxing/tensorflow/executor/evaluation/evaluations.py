"""The actions of a run that evaluates inside training."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.actions.action import Action
from moxing.tensorflow.executor.actions.context import RunContext
from moxing.tensorflow.executor.evaluation.branch import Branch, Evaluation
from moxing.tensorflow.executor.evaluation.branch_hooks_action import BranchHooksAction
from moxing.tensorflow.executor.evaluation.control import RunControl
from moxing.tensorflow.executor.evaluation.evaluate_action import EvaluateAction, FollowAction
from moxing.tensorflow.executor.evaluation.evaluator import Evaluator
from moxing.tensorflow.executor.evaluation.summaries import EvaluationSummaries
from moxing.tensorflow.executor.hooks.evaluation import EvaluationHook, check_directories


def evaluation_actions(run: RunContext, evaluation: Evaluation, actions: Sequence[Action]) -> list[Action]:
    """Makes the actions that use the evaluation branches, and restores what their hooks have saved.

    Args:
      run: the open run.
      evaluation: the evaluation branches.
      actions: the other actions; notified of pauses and of replaced variables.
    """
    evaluation.hooks.after_create_session(run.session, tf.train.Coordinator())
    made: list[Action] = [BranchHooksAction(evaluation, run)]
    hooks = _evaluation_hooks(evaluation.branches)
    if not hooks:
        return made
    _check(hooks, run)
    control = RunControl(run, actions)
    if run.asynchronous and not run.job.role.is_chief:
        return [FollowAction(control, run.job.announcements), *made]
    # Synchronous workers all evaluate, get the same means and so decide alike. Else the chief decides for all.
    gather = (lambda _, value: [value]) if run.asynchronous else run.job.all_gather
    datasets = [(branch.hooks, Evaluator(branch, run.session, run.stop, gather).run) for branch in evaluation.branches]
    evaluate = EvaluateAction(datasets, control, actions, _summaries(run, hooks), run.asynchronous)
    evaluate.resume(run.position.hooks, run.start.global_step)
    return [evaluate, *made]


def _evaluation_hooks(branches: Sequence[Branch]) -> list[EvaluationHook]:
    by_index = {index: hook for branch in branches for index, hook in branch.hooks.items()}
    return [by_index[index] for index in sorted(by_index)]


def _check(hooks: Sequence[EvaluationHook], run: RunContext) -> None:
    keeping = [type(hook).__name__ for hook in hooks if hook.keeps_best]
    if keeping and run.config.log_dir is None and run.job.role.is_chief:
        raise ValueError(f"{keeping[0]} keeps the best variables in log_dir: give mox.run(log_dir=...).")
    check_directories(hooks)


def _summaries(run: RunContext, hooks: Sequence[EvaluationHook]) -> EvaluationSummaries | None:
    config = run.config
    if not config.log_dir or not config.summary_every or config.inter_mode is None:
        return None
    return EvaluationSummaries(config.log_dir, config.inter_mode.value.lower(), hooks)

"""The hooks of a run that become actions, put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.checkpoint import Keeper
from moxing.tensorflow.executor.hooks.action import Action
from moxing.tensorflow.executor.hooks.nan_guard import NanGuardAction, NanGuardHook
from moxing.tensorflow.executor.hooks.run_hook import RunHook, RunParts
from moxing.tensorflow.executor.signals import StopSignal
from moxing.tensorflow.executor.specs import ModeKeys, RunResult


def hook_actions(hooks: Sequence[Any], run: RunParts) -> list[Action]:
    """The actions of hooks.

    Args:
      hooks: all that `model_fn` returned for the first tower.
      run: the run.
    """
    own = [hook for hook in hooks if isinstance(hook, RunHook)]
    if len([hook for hook in own if isinstance(hook, NanGuardHook)]) > 1:
        raise ValueError(
            "ModelSpec(hooks=[...]) has several mox.NanGuardHook: one watches all tensors that it is given."
        )
    training = run.config.mode is ModeKeys.TRAIN
    actions = [hook.action(run) for hook in own if training or hook.in_every_mode]
    return [action for action in actions if action is not None]


def remember(actions: Sequence[Action], keeper: Keeper | None) -> None:
    """Has the checkpoints hold what actions of hooks must know later, beside what they hold already."""
    guards = [action for action in actions if isinstance(action, NanGuardAction)]
    if keeper is None or not guards:
        return
    others = keeper.hook_states
    keeper.hook_states = lambda: {**others(), **{guard.key: guard.state() for guard in guards}}


@dataclass
class End:
    """How a run ended; `result` is set where it ended well."""

    result: RunResult | None = None


@contextmanager
def ending(hooks: Sequence[Any], stop: StopSignal) -> Iterator[End]:
    """Tells hooks how what is inside ended.

    Args:
      hooks: all that `model_fn` returned for the first tower.
      stop: says whether a signal came.
    """
    end = End()
    try:
        yield end
    except BaseException as error:
        by_signal = isinstance(error, SystemExit) and stop.number is not None
        for hook in _run_hooks(hooks):
            try:
                hook.run_ended("signal" if by_signal else "error", None if by_signal else error, None)
            except Exception as another:  # what ended the run is what its caller must see
                tf.logging.error("%s failed when the run had ended: %r", type(hook).__name__, another)
        raise
    for hook in _run_hooks(hooks):
        hook.run_ended("end", None, end.result)


def _run_hooks(hooks: Sequence[Any]) -> list[RunHook]:
    return [hook for hook in hooks if isinstance(hook, RunHook)]

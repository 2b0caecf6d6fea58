"""What is known about TensorFlow's own hooks: when they must run next, and which tensors they fetch.

A hook is called once per `session.run`. Many steps may run in one call as long as no hook misses a step that it waits
for. Other hooks may want every step: `sees_every_step` says so.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.training import training_util

#: No limit.
ENDLESS = sys.maxsize

_PACKAGE = "tensorflow_estimator.python.estimator"


def steps_until(hook: tf.train.SessionRunHook, global_step: int) -> int:
    """Returns how many steps may run until the hook must be called again, at least 1.

    Call it after `before_run`.

    Args:
      hook: a hook for which `sees_every_step` is False.
      global_step: the global step now.

    Example:
      >>> steps_until(tf.train.StopAtStepHook(last_step=100), 40)
      60
    """
    rule = _rule(hook)
    return max(1, rule(hook, global_step)) if rule is not None else ENDLESS


def skip(hook: tf.train.SessionRunHook, steps: int) -> None:
    """Tells a hook that counts its calls that `steps` steps ran without one."""
    if hasattr(hook, "_iter_count") and _rule(hook) is _by_iterations:
        hook._iter_count += steps


def sees_every_step(hook: tf.train.SessionRunHook) -> bool:
    """Returns True if a hook must be called after every step: it is not one of TensorFlow's, and looks at steps.

    Example:
      >>> class Quiet(tf.train.SessionRunHook):
      ...     def begin(self): pass
      >>> class Curious(tf.train.SessionRunHook):
      ...     def after_run(self, run_context, run_values): pass
      >>> sees_every_step(Quiet()), sees_every_step(Curious()), sees_every_step(tf.train.StepCounterHook())
      (False, True, False)
    """
    return waits_for_workers(hook) or (_rule(hook) is None and not _has_methods_of(hook, tf.train.SessionRunHook))


def last_step(hook: tf.train.SessionRunHook) -> int | None:
    """Returns the step at which a hook ends the training; None if it does not, or does not know it yet.

    Example:
      >>> last_step(tf.train.StopAtStepHook(last_step=100))
      100
    """
    return hook._last_step if isinstance(hook, tf.train.StopAtStepHook) else None


def waits_for_workers(hook: tf.train.SessionRunHook) -> bool:
    """Returns True for the hook of `tf.train.SyncReplicasOptimizer`: a step of one worker waits for those of others."""
    return type(hook).__module__.endswith(".sync_replicas_optimizer")


def fetched_tensors(hook: tf.train.SessionRunHook) -> list[tf.Tensor]:
    """Returns the tensors that a known hook may fetch with a step. Call it after `begin`."""
    if isinstance(hook, tf.train.LoggingTensorHook):
        fetches = list(hook._current_tensors.values())
    elif isinstance(hook, tf.train.NanTensorHook):
        fetches = [hook._loss_tensor]
    elif isinstance(hook, tf.train.SummarySaverHook):
        fetches = list(hook._get_summary_op() or [_default_summary()])
    else:
        fetches = [getattr(hook, name, None) for name in ("_global_step_tensor", "_stop_var")]
    graph = tf.get_default_graph()
    elements = [graph.as_graph_element(fetch) for fetch in fetches if fetch is not None]
    return [element for element in elements if isinstance(element, tf.Tensor)]


def is_shared_global_step(tensor: tf.Tensor) -> bool:
    """Returns True if a tensor is the copy of the global step that TensorFlow's hooks share.

    Example:
      >>> with tf.Graph().as_default():
      ...     step = tf.train.create_global_step()
      ...     hook = tf.train.StepCounterHook()
      ...     hook.begin()
      ...     is_shared_global_step(hook._global_step_tensor), is_shared_global_step(step + 1)
      (True, False)
    """
    return any(tensor is one for one in shared_global_steps(tensor.graph))


def shared_global_steps(graph: tf.Graph | None = None) -> list[tf.Tensor]:
    """Returns the copy of the global step that TensorFlow's hooks share, if one of them has begun.

    Args:
      graph: default: the default graph.

    Example:
      >>> with tf.Graph().as_default():
      ...     shared_global_steps()
      []
    """
    return list((graph or tf.get_default_graph()).get_collection(training_util.GLOBAL_STEP_READ_KEY))


def end_of_training(hooks: Sequence[tf.train.SessionRunHook], global_step: int) -> int | None:
    """Returns the global step at which the first of the hooks ends a training; None if no hook knows it.

    Args:
      hooks: the hooks.
      global_step: the global step at the start.

    Example:
      >>> end_of_training([tf.train.StopAtStepHook(num_steps=30), tf.train.StepCounterHook()], 5)
      35
    """
    known = [hook for hook in hooks if isinstance(hook, tf.train.StopAtStepHook)]
    ends = [global_step + hook._num_steps if hook._last_step is None else hook._last_step for hook in known]
    return min(map(int, ends), default=None)


def of_session(session: tf.train.MonitoredSession) -> list[tf.train.SessionRunHook]:
    """Returns the hooks of a session, in the order in which they are called."""
    return list(session._hooks)


def _default_summary() -> tf.Tensor | None:
    """The merged summary that a scaffold takes when the session is created."""
    return tf.train.Scaffold.get_or_default("summary_op", tf.GraphKeys.SUMMARY_OP, tf.summary.merge_all)


def _by_global_step(hook: Any, global_step: int) -> int:
    return _until(hook._timer, global_step)


def _by_iterations(hook: Any, _: int) -> int:
    return _until(hook._timer, hook._iter_count)


def _by_next_step(hook: Any, _: int) -> int:
    return _until(hook._timer, hook._next_step) if hook._next_step is not None else 1


def _by_step_before(hook: Any, global_step: int) -> int:
    """It gets the global step from before the update."""
    return _until(hook._timer, global_step - 1)


def _until(timer: Any, now: int) -> int:
    last = timer.last_triggered_step()
    # After some seconds, or never: calls are short enough for that.
    every = getattr(timer, "_every_steps", None)
    if not isinstance(timer, tf.train.SecondOrStepTimer):
        return ENDLESS
    if last is None:
        return 1
    return ENDLESS if every is None else int(last + every - now)


def _last_step(hook: Any, global_step: int) -> int:
    return int(hook._last_step - global_step) if hook._last_step is not None else 1


def _any_time(hook: Any, _: int) -> int:
    return ENDLESS


_Rule = Callable[[Any, int], int]

#: The rules for the hooks of TensorFlow, then for those of tensorflow-estimator by module and name.
_RULES: Sequence[tuple[type, _Rule]] = (
    (tf.train.LoggingTensorHook, _by_iterations),
    (tf.train.NanTensorHook, _any_time),
    (tf.train.SummarySaverHook, _by_next_step),
    (tf.train.ProfilerHook, _by_next_step),
    (tf.train.StepCounterHook, _by_global_step),
    (tf.train.CheckpointSaverHook, _by_global_step),
    (tf.train.StopAtStepHook, _last_step),
    (tf.train.GlobalStepWaiterHook, _any_time),
    (tf.train.FinalOpsHook, _any_time),
)
_RULES_OF_PACKAGE: Sequence[tuple[str, str, _Rule]] = (
    ("early_stopping", "_StopOnPredicateHook", _by_step_before),
    ("early_stopping", "_CheckForStoppingHook", _any_time),
    ("hooks.hooks", "InMemoryEvaluatorHook", _by_iterations),
)


def _rule(hook: tf.train.SessionRunHook) -> _Rule | None:
    for known, rule in _RULES:
        if isinstance(hook, known):
            # A subclass may want more steps than its base class.
            return rule if _has_methods_of(hook, known) else None
    if f"{_PACKAGE}.estimator" in sys.modules:
        for module, name, rule in _RULES_OF_PACKAGE:
            if type(hook) is getattr(importlib.import_module(f"{_PACKAGE}.{module}"), name):
                return rule
    return None


def _has_methods_of(hook: tf.train.SessionRunHook, known: type) -> bool:
    # A hook need not be a SessionRunHook: it may only look like one.
    return all(getattr(type(hook), name, None) is getattr(known, name) for name in ("before_run", "after_run"))

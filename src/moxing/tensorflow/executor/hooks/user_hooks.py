"""Runs `tf.train.SessionRunHook` objects around the steps, as `MonitoredSession` did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.hooks.aggregative import AggregativeSessionRunHook
from moxing.tensorflow.executor.hooks.outputs import OutputHook
from moxing.tensorflow.executor.hooks.run_hook import RunHook
from moxing.tensorflow.executor.specs import ModeKeys, RunResult

if TYPE_CHECKING:  # the step is built with hooks
    from moxing.tensorflow.executor.build.step import Step
    from moxing.tensorflow.executor.config import RunConfig
    from moxing.tensorflow.executor.loop.signals import StopSignal

_BASES = (tf.train.SessionRunHook, AggregativeSessionRunHook)


class UserHooks:
    """The hooks of one run.

    Args:
      hooks: the hooks, in the order in which they run.
      inter: True for the hooks of an evaluation branch.
    """

    def __init__(self, hooks: Sequence[tf.train.SessionRunHook], inter: bool = False) -> None:
        self._hooks = list(hooks)
        #: True if a hook looks at, or feeds, every step.
        self.want_every_step = any(_wants_every_step(hook) for hook in hooks)
        self.stop_requested = False
        #: True if all workers decided to stop after this same step.
        self.stopped_by_all = False
        for hook in self._hooks:
            _check(hook, inter)

    def request_stop(self, by_all: bool = False) -> None:
        """Ends the run after this step, as `SessionRunContext.request_stop` does.

        Args:
          by_all: True if all workers ask for it after the same step, so that none waits for another.
        """
        self.stop_requested = True
        self.stopped_by_all = self.stopped_by_all or by_all

    def begin(self) -> None:
        """Called before the session is created; hooks may still add to the graph."""
        for hook in self._hooks:
            hook.begin()
        savers = tf.get_collection(tf.GraphKeys.SAVERS)
        if not savers and tf.global_variables() and any(not isinstance(hook, OutputHook) for hook in self._hooks):
            # MonitoredSession's scaffold puts a saver there, and hooks that save look for it.
            tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver())

    def after_create_session(self, session: tf.Session, coordinator: tf.train.Coordinator) -> None:
        """Called when the variables are initialised."""
        for hook in self._hooks:
            hook.after_create_session(session, coordinator)

    def end(self, session: tf.Session) -> None:
        """Called after the last step of a run that ended without an error."""
        for hook in self._hooks:
            hook.end(session)

    def run(
        self, session: tf.Session, fetches: Any, feed_dict: dict[Any, Any] | None = None, options: Any = None
    ) -> Any:
        """`session.run` with every hook's fetches and feeds added; returns the values of `fetches`."""
        if not self.want_every_step:
            return session.run(fetches, feed_dict, options=options)
        feeds = dict(feed_dict or {})
        wanted: dict[str, Any] = {"moxing": fetches}
        context = tf.train.SessionRunContext(tf.train.SessionRunArgs(fetches, feed_dict), session)
        for index, hook in enumerate(self._hooks):
            request = hook.before_run(context)
            if request is None:
                continue
            if request.fetches is not None:
                wanted[str(index)] = request.fetches
            _add_feeds(feeds, request.feed_dict, hook)
            options = options or request.options
        options = options or tf.RunOptions()
        metadata = tf.RunMetadata()
        values = session.run(wanted, feeds, options=options, run_metadata=metadata)
        for index, hook in enumerate(self._hooks):
            hook.after_run(context, tf.train.SessionRunValues(values.get(str(index)), options, metadata))
        self.stop_requested = self.stop_requested or context.stop_requested
        return values["moxing"]


@contextmanager
def reporting_end(hooks: Sequence[RunHook], stop: StopSignal, result: Callable[[], RunResult | None]) -> Iterator[None]:
    """Tells the hooks how the run inside has ended.

    Args:
      hooks: the hooks that the run itself serves.
      stop: whether a signal ended the run.
      result: returns what `mox.run` returns; called when the run has ended without an error.
    """
    try:
        yield
    except BaseException as error:
        by_signal = isinstance(error, SystemExit) and stop.number is not None
        for hook in hooks:
            try:
                hook.run_ended("signal" if by_signal else "error", None if by_signal else error, None)
            except Exception as another:  # the caller must see the error that ended the run
                tf.logging.error("%s failed after the run had ended: %r", type(hook).__name__, another)
        raise
    for hook in hooks:
        hook.run_ended("end", None, result())


def hooks_of_run(config: RunConfig, step: Step) -> UserHooks:
    """The hooks that `model_fn` returned, and the one that calls `output_fn`.

    Args:
      config: the arguments of the run.
      step: the step, with the models of all towers.
    """
    # Outside TRAIN, hooks that evaluate inside training have nothing to do. In TRAIN they need `inter_mode`.
    keep = without_branch_hooks if config.inter_mode or config.mode is not ModeKeys.TRAIN else list
    hooks = hooks_of_towers([keep(model.hooks) for model in step.models], step.lengths)
    if config.output_fn is not None and config.output_every:
        if not step.model.output_info:
            raise ValueError("mox.run(output_fn=...): model_fn returned no output_info for output_fn.")
        outputs = [model.output_info for model in step.models]
        hooks.append(OutputHook(config.output_fn, outputs, config.output_every, step.inputs.present))
    return UserHooks(hooks)


def without_branch_hooks(hooks: Sequence[Any]) -> list[Any]:
    """The hooks that run on the step itself, not on an evaluation branch."""
    return [hook for hook in hooks if not wants_branch(hook)]


def wants_branch(hook: Any) -> bool:
    """True where a hook runs on the model in `inter_mode`."""
    return hasattr(hook, "run_inter_mode") and bool(hook.run_inter_mode())


def hooks_of_towers(
    towers: Sequence[Sequence[tf.train.SessionRunHook]], weights: Sequence[tf.Tensor] = ()
) -> list[tf.train.SessionRunHook]:
    """Combines the hooks that `model_fn` returned for every tower.

    One hook that supports aggregation serves all towers and sees the means. A hook that does not runs once per tower.
    Of a plain `tf.train.SessionRunHook`, which knows nothing of towers, only that of the first tower runs.

    Args:
      towers: the hooks of every tower, the same number in the same order.
      weights: the weight of each tower in a mean; empty for equal weights.
    """
    kinds = [[type(hook).__name__ for hook in hooks] for hooks in towers]
    for index, names in enumerate(kinds):
        if names != kinds[0]:
            raise ValueError(
                f"model_fn returned the hooks {names} for tower {index}, and {kinds[0]} for the first one: they must "
                "be the same, in the same order."
            )
    hooks: list[tf.train.SessionRunHook] = []
    for same in zip(*towers, strict=True):
        different = list({id(hook): hook for hook in same}.values())
        alone = isinstance(same[0], RunHook) or not isinstance(same[0], AggregativeSessionRunHook)
        if len(different) == 1 or alone:
            hooks.append(same[0])
        elif same[0].support_aggregation():
            hooks.append(_Aggregated(same, weights))
        else:
            hooks.extend(different)
    return hooks


class _Aggregated(AggregativeSessionRunHook):
    """One hook for all towers: the hook of the first tower gets the means of what the hooks of all towers fetch.

    The other hooks only name their tensors. They get the numeric attributes of the first one, so that they ask for
    values at the same steps.

    Args:
      towers: the hook of every tower.
      weights: the weight of each tower; empty for equal weights.
    """

    def __init__(self, towers: Sequence[AggregativeSessionRunHook], weights: Sequence[tf.Tensor]) -> None:
        self._first, self._towers, self._weights = towers[0], towers, list(weights)
        self.wants_every_step = _wants_every_step(towers[0])

    def support_aggregation(self) -> bool:
        return True

    def support_sync_workers(self) -> bool:
        return self._first.support_sync_workers()

    def run_inter_mode(self) -> bool:
        return self._first.run_inter_mode()

    def begin(self) -> None:
        for hook in self._towers:
            hook.begin()

    def after_create_session(self, session: tf.Session, coord: tf.train.Coordinator) -> None:
        self._first.after_create_session(session, coord)

    def before_run(self, run_context: Any) -> Any:
        numbers = {name: value for name, value in vars(self._first).items() if _is_number(value)}
        for hook in self._towers[1:]:
            for name, value in numbers.items():
                setattr(hook, name, value)
        requests = [hook.before_run(run_context) for hook in self._towers]
        if requests[0] is None:
            return None
        feeds: dict[Any, Any] = {}
        for index, request in enumerate(requests):
            if request is None:
                raise ValueError(
                    f"The hook {type(self._first).__name__} requests values of the first tower, and in the same step "
                    f"none of tower {index}: before_run must decide the same for all towers. Or let "
                    "support_aggregation return False: each tower then has its own hook."
                )
            _add_feeds(feeds, request.feed_dict, self._first)
        if requests[0].fetches is None:
            fetches = None
        else:
            fetches = {"towers": [request.fetches for request in requests], "weights": self._weights}
        return tf.train.SessionRunArgs(fetches, feeds or None, requests[0].options)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.results is not None:
            weights = run_values.results["weights"] or None
            means = tf.nest.map_structure(lambda *values: _mean(values, weights), *run_values.results["towers"])
            run_values = run_values._replace(results=means)
        self._first.after_run(run_context, run_values)

    def end(self, session: tf.Session) -> None:
        self._first.end(session)


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.number)


def _mean(values: Sequence[Any], weights: Sequence[Any] | None) -> Any:
    """The mean over the towers; the first tower's value where there is none (text, operations, unequal shapes)."""
    arrays = [np.asarray(value) for value in values]
    if not np.issubdtype(arrays[0].dtype, np.number) or len({array.shape for array in arrays}) > 1:
        return values[0]
    exact = np.result_type(arrays[0].dtype, np.float64)
    average = np.average(np.asarray(arrays, exact), axis=0, weights=weights)
    return average.astype(arrays[0].dtype) if np.issubdtype(arrays[0].dtype, np.inexact) else average


def _wants_every_step(hook: tf.train.SessionRunHook) -> bool:
    if isinstance(hook, _Aggregated):
        return hook.wants_every_step
    return any(_overrides(hook, name) for name in ("before_run", "after_run"))


def _overrides(hook: tf.train.SessionRunHook, method: str) -> bool:
    return all(getattr(type(hook), method) is not getattr(base, method) for base in _BASES)


def _check(hook: tf.train.SessionRunHook, inter: bool) -> None:
    if not isinstance(hook, AggregativeSessionRunHook):
        return
    hook.support_aggregation()
    hook.support_sync_workers()
    if hook.run_inter_mode() and not inter:
        raise ValueError(
            f"The hook {type(hook).__name__} needs the inter_mode graph, but mox.run has no inter_mode: pass "
            "mox.run(inter_mode=mox.ModeKeys.EVAL)."
        )


def _add_feeds(feeds: dict[Any, Any], more: Any, hook: tf.train.SessionRunHook) -> None:
    """Adds the feeds of a hook. Two hooks may feed a tensor the same value, such as Keras' learning phase."""
    for key, value in (more or {}).items():
        if key in feeds and not _equal(feeds[key], value):
            raise ValueError(
                f"Two hooks feed the same tensor {key} different values; the second is {type(hook).__name__}."
            )
        feeds[key] = value


def _equal(one: Any, other: Any) -> bool:
    return one is other or np.array_equal(np.asarray(one), np.asarray(other))

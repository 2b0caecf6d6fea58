"""Running `tf.train.SessionRunHook` objects around the steps, as `MonitoredSession` did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.hooks.aggregative import AggregativeSessionRunHook

_BASES = (tf.train.SessionRunHook, AggregativeSessionRunHook)


class UserHooks:
    """The hooks of one run.

    Args:
      hooks: the hooks, in their order.
    """

    def __init__(self, hooks: Sequence[tf.train.SessionRunHook]) -> None:
        self._hooks = list(hooks)
        #: True when a hook looks at, or feeds, every step.
        self.want_every_step = any(_overrides(hook, name) for hook in hooks for name in ("before_run", "after_run"))
        self.stop_requested = False
        for hook in self._hooks:
            _check(hook)

    def begin(self) -> None:
        """Before the session; hooks may still add to the graph."""
        for hook in self._hooks:
            hook.begin()

    def after_create_session(self, session: tf.Session, coordinator: tf.train.Coordinator) -> None:
        """When variables have their values."""
        for hook in self._hooks:
            hook.after_create_session(session, coordinator)

    def end(self, session: tf.Session) -> None:
        """After the last step of a run that ended well."""
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


def _overrides(hook: tf.train.SessionRunHook, method: str) -> bool:
    return all(getattr(type(hook), method) is not getattr(base, method) for base in _BASES)


def _check(hook: tf.train.SessionRunHook) -> None:
    if not isinstance(hook, AggregativeSessionRunHook):
        return
    hook.support_aggregation()
    hook.support_sync_workers()
    if hook.run_inter_mode():
        raise ValueError(
            f"The hook {type(hook).__name__} wants the inter_mode graph, and mox.run was given no inter_mode."
        )


def _add_feeds(feeds: dict[Any, Any], more: Any, hook: tf.train.SessionRunHook) -> None:
    for key, value in (more or {}).items():
        if key in feeds:
            raise ValueError(f"Two hooks feed the same tensor {key}; the second is {type(hook).__name__}.")
        feeds[key] = value

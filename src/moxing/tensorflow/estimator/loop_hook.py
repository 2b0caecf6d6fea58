"""Runs many steps of an Estimator per `session.run`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.estimator.fetches import leaves, map_leaves
from moxing.tensorflow.estimator.step_budget import StepBudget
from moxing.tensorflow.executor.loop.step_loop import (
    ON_CALLING_THREAD,
    SECONDS_PER_CALL,
    SHORT_STEP_SECONDS,
    RepeatedStep,
)
from moxing.tf1.estimator import known_hooks
from moxing.tf1.graph.surgery import CannotRebuild, read_before_write, reads_variable
from moxing.tf1.graph.variable_fetches import fetched_value


class LoopHook(tf.train.SessionRunHook):
    """Makes each `session.run` of the training step do as many steps as the other hooks allow.

    It must be the last hook: when it begins, the tensors of the others are known.

    Args:
      train_op: the training step.
      loss: its loss; the loop ends when it is not finite.
      hooks: hooks that look at the same steps and fetch the same tensors as those of the session will.
      budget: shares the steps with the other workers of a job; None without others.

    Attributes:
      steps: steps done in this session.
    """

    def __init__(
        self,
        train_op: tf.Operation | tf.Tensor,
        loss: tf.Tensor,
        hooks: Sequence[tf.train.SessionRunHook],
        budget: StepBudget | None = None,
    ) -> None:
        self._train_op, self._loss, self._hooks, self._budget = train_op, loss, hooks, budget
        self._global_step = tf.train.get_global_step()
        self._loop: _Loop | None = None
        self._seconds_per_step: float | None = None
        self.steps = 0

    def follow(self, hooks: Sequence[tf.train.SessionRunHook]) -> None:
        """Lets these hooks, those of the open session, decide how many steps run at once."""
        self._hooks = hooks

    def begin(self) -> None:
        if self._budget is not None:
            self._budget.build(self._global_step)
        if isinstance(self._global_step, tf.compat.v2.distribute.DistributedValues):
            tf.logging.debug("One step per session.run: the variables are those of a strategy.")
            return
        read_before_write([self._train_op, self._loss], self._global_step)
        self._build_loop()
        if self._loop is None:
            # A hook that reads it after the step once, and before it the next time, sees the same step twice.
            copies = [copied.op for copied in known_hooks.shared_global_steps()]
            read_before_write([self._train_op, self._loss], self._global_step, copies)

    def _build_loop(self) -> None:
        if not tf.control_flow_v2_enabled():
            tf.logging.debug("One step per session.run: the program calls tf.disable_control_flow_v2().")
            return
        curious = [type(hook).__name__ for hook in self._hooks if known_hooks.sees_every_step(hook)]
        if curious:
            tf.logging.debug("One step per session.run: %s looks at every step.", curious[0])
            return
        tensors = [fetched_value(tensor) for hook in self._hooks for tensor in known_hooks.fetched_tensors(hook)]
        try:
            self._loop = _Loop(self._train_op, self._loss, tensors, self._global_step)
        except CannotRebuild as reason:
            tf.logging.debug("One step per session.run: %s.", reason)

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        """Makes `session.run` count the steps, and run the loop where the training step is fetched."""
        run_plainly, loop = session.run, self._loop
        now = int(run_plainly(self._global_step))

        def run(fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
            nonlocal now
            if not any(leaf is self._train_op for leaf in leaves(fetches)):
                return run_plainly(fetches, feed_dict, options, run_metadata)
            is_plain = loop is None or feed_dict or not loop.can_serve(fetches)
            traced = options is not None and options.trace_level
            steps = self._claim(run_plainly, 1 if is_plain or traced else self._steps_at_once(now))
            if loop is None or is_plain:
                values = run_plainly(fetches, feed_dict, options, run_metadata)
                self.steps += 1
                return values
            short = self._seconds_per_step is not None and self._seconds_per_step < SHORT_STEP_SECONDS
            started = time.perf_counter()
            values, done, now = loop.run(
                lambda wanted, feed: run_plainly(
                    wanted, feed, options or (ON_CALLING_THREAD if short else None), run_metadata
                ),
                fetches,
                steps,
            )
            self._seconds_per_step = max(time.perf_counter() - started, 1e-9) / done
            self.steps += done
            for hook in self._hooks:
                # The last step is the one that the hooks are called for.
                known_hooks.skip(hook, done - 1)
            return values

        session.run = run

    def end(self, session: tf.Session) -> None:
        if self._budget is not None:
            self._budget.give_back(session.run)

    def _claim(self, run: Callable[..., Any], wanted: int) -> int:
        last = min((step for hook in self._hooks if (step := known_hooks.last_step(hook)) is not None), default=None)
        return wanted if self._budget is None or last is None else self._budget.claim(run, wanted, last)

    def _steps_at_once(self, global_step: int) -> int:
        if self._seconds_per_step is None:
            return 1  # the time of a step is not known yet
        steps = min((known_hooks.steps_until(hook, global_step) for hook in self._hooks), default=known_hooks.ENDLESS)
        if self._budget is not None:
            steps //= self._budget.workers  # the others do as many in that time
        return max(1, min(steps, int(SECONDS_PER_CALL / self._seconds_per_step)))


class _Loop:
    """The training step in a loop, and what is fetched instead of the tensors that hooks ask for."""

    def __init__(
        self,
        train_op: tf.Operation | tf.Tensor,
        loss: tf.Tensor,
        tensors: Sequence[tf.Tensor],
        global_step: tf.Variable,
    ) -> None:
        graph = tf.get_default_graph()
        self._as_element = graph.as_graph_element
        self._train_op = train_op
        fetched = {tensor.name: tensor for tensor in tensors}
        if isinstance(train_op, tf.Tensor):
            fetched[train_op.name] = train_op
        steps = {
            name
            for name, tensor in fetched.items()
            if known_hooks.is_shared_global_step(tensor) or reads_variable(tensor, global_step)
        }
        asides = {name: tensor for name, tensor in fetched.items() if name not in {loss.name, *steps}}
        with tf.name_scope("moxing_loop"):
            # The loss of every step: the first that is not finite ends the loop, and NanTensorHook must see it.
            checks = {loss.name: (loss, tf.zeros([], loss.dtype))}
            self._repeated = RepeatedStep(train_op, checks, _is_finite, asides)
            outputs = self._repeated.outputs
            with tf.control_dependencies([output.op for output in outputs.values()]):
                self._after = global_step.read_value()
            # Hooks expect the global step from before the step.
            self._before = self._after - 1
        self._replaced: dict[str, tf.Tensor] = {name: outputs[name] for name in (loss.name, *asides)}
        self._replaced |= dict.fromkeys(steps, self._before)
        self._replaced[train_op.name] = self._replaced.get(train_op.name, outputs["rounds"].op)

    def can_serve(self, fetches: Any) -> bool:
        """Whether the loop has a tensor for everything that is fetched."""
        return all(self._name(leaf) in self._replaced for leaf in leaves(fetches))

    def run(self, run: Callable[[Any, dict[Any, Any]], Any], fetches: Any, steps: int) -> tuple[Any, int, int]:
        """Runs up to `steps` steps.

        Returns:
          The values of the fetches in the last step, the number of steps, and the global step after them.
        """
        wanted = {self._name(leaf) for leaf in leaves(fetches)}
        feed: dict[Any, Any] = {self._repeated.rounds: steps}
        feed.update({wants: True for name, wants in self._repeated.wants.items() if name in wanted})
        replaced = map_leaves(lambda leaf: self._replaced[self._name(leaf)], fetches)
        values, done, now = run([replaced, self._repeated.outputs["rounds"], self._after], feed)
        return values, int(done), int(now)

    def _name(self, fetch: Any) -> str:
        """The name of a fetched tensor or operation; empty for anything else, such as a sparse tensor."""
        try:
            return str(fetched_value(self._as_element(fetch)).name)
        except (TypeError, ValueError, KeyError):
            return ""


def _is_finite(checks: Mapping[str, tf.Tensor]) -> list[tf.Tensor]:
    return [tf.is_finite(loss) for loss in checks.values() if loss.dtype.is_floating]

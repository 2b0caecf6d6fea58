"""Many steps per `session.run`.

The step is built once, normally. `StepLoop` derives a `tf.while_loop` from it: the body imports the step's graph and
captures variables and iterators from outside. The number of rounds is fed, so one loop serves every number of steps:
the graph is optimised once, and seeded random operations draw one sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.build.step import Checks, CheckValues, Step
from moxing.tensorflow.executor.loop.progress import Aside, Progress
from moxing.tf1.graph.surgery import CannotRebuild, Subgraph

#: Signals are handled between two calls, so a call must not take much longer than this.
SECONDS_PER_CALL = 0.5
#: Shorter steps run on the calling thread: passing their small operations between threads costs more than it gains.
SHORT_STEP_SECONDS = 0.001
ON_CALLING_THREAD = tf.RunOptions(inter_op_thread_pool=-1)


class Stepper:
    """Runs one step per `session.run`, as hooks need that look at every step.

    Args:
      step: the step to run.
    """

    many = False

    def __init__(self, step: Step) -> None:
        self._step, self._asides = step, _asides(step)
        with tf.control_dependencies([step.operation, *_computed(step.checks).values()]):
            self._after = self._state()
        self._now = self._state()

    def _state(self) -> dict[str, Any]:
        return {"global_step": self._step.global_step.read_value(), "ledger": self._step.ledger.read()}

    def advance(self, run: Any, steps: int, wanted: Collection[Aside] = ()) -> Progress:
        """Does one step.

        Args:
          run: `(fetches, feed_dict)`, a function like `session.run`.
          steps: the most steps to do; here always one, in a `StepLoop` up to this number.
          wanted: extra values that the last step computes.
        """
        asides = {aside.value: tensor for aside, tensor in self._asides.items() if aside in wanted}
        return self._progress(run({"state": self._after, **_computed(self._step.checks), **asides}), wanted)

    def current(self, session: tf.Session, ended: bool = False) -> Progress:
        """The state without doing a step, for instance after the end of the data."""
        return self._progress({"state": session.run(self._now)}, ended=ended)

    def _progress(self, values: dict[str, Any], wanted: Collection[Aside] = (), ended: bool = False) -> Progress:
        checks = read_checks(values)
        return Progress(
            global_step=int(values["state"]["global_step"]),
            ledger=self._step.ledger.decode(values["state"]["ledger"]),
            finite=checks.finite,
            ended=ended,
            halt=checks.halt,
            next_steps=checks.next_steps,
            summary=values.get("summary") or None,
            probes=dict(zip(self._step.probes, values["probes"].tolist(), strict=True))
            if Aside.PROBES in wanted and "probes" in values
            else {},
            guard=checks.guard,
        )


class StepLoop(Stepper):
    """Runs many steps per `session.run`. Raises `CannotRebuild` if the step cannot run inside a loop."""

    many = True

    def __init__(self, step: Step) -> None:
        super().__init__(step)
        initial = vars(CheckValues())
        checks = {
            name: (tensor, tf.constant(initial[name], tensor.dtype)) for name, tensor in _computed(step.checks).items()
        }
        asides = {aside.value: tensor for aside, tensor in self._asides.items()}
        self._loop = RepeatedStep(step.operation, checks, lambda last: conditions(Checks(**last)), asides)
        with tf.control_dependencies([output.op for output in self._loop.outputs.values()]):
            self._after = self._state()

    def advance(self, run: Any, steps: int, wanted: Collection[Aside] = ()) -> Progress:
        """Does up to `steps` steps in one call; a loss that is not finite ends it early."""
        feed = {self._loop.rounds: steps}
        feed.update({self._loop.wants[aside.value]: aside in wanted for aside in self._asides})
        return self._progress(run({"state": self._after, **self._loop.outputs}, feed), wanted)


def read_checks(fetched: Mapping[str, Any]) -> CheckValues:
    """The values of the checks in what `session.run` returned; other entries are ignored.

    Example:
      >>> read_checks({'halt': np.int32(2), 'summary': b''})
      CheckValues(finite=True, halt=2, reached=0, next_steps=1, guard=0)
    """
    return CheckValues(**{name: np.asarray(fetched[name]).item() for name in vars(CheckValues()) if name in fetched})


def conditions(last: Checks) -> list[tf.Tensor]:
    """Boolean tensors that must all be true for another step to run.

    Args:
      last: the checks of the last step.
    """
    stops = [tf.equal(check, 0) for check in (last.halt, last.reached, last.guard) if check is not None]
    return stops if last.finite is None else [last.finite, *stops]


def _computed(checks: Checks) -> dict[str, tf.Tensor]:
    return {name: tensor for name, tensor in vars(checks).items() if tensor is not None}


def _asides(step: Step) -> dict[Aside, tf.Tensor]:
    """The tensors that a step computes only when they are wanted."""
    asides = {} if step.summary is None else {Aside.SUMMARY: step.summary}
    if step.probes:
        asides[Aside.PROBES] = tf.stack(list(step.probes.values()), name="moxing/probes/all")
    return asides


def make_stepper(step: Step, every_step: bool) -> Stepper:
    """Runs `step` in a loop where possible, and in single steps if `every_step` is set."""
    if every_step:
        return Stepper(step)
    try:
        return StepLoop(step)
    except CannotRebuild as reason:
        tf.logging.debug("One step per session.run: %s.", reason)
        return Stepper(step)


class RepeatedStep:
    """Repeats a step. The body of the loop imports the graph of the step and captures variables and iterators.

    The number of rounds is fed, so one loop serves every number of steps: the graph is optimised once, and seeded
    random operations draw one sequence.

    Args:
      operation: the step.
      checks: scalars of the step that decide whether the loop goes on, by name, each with its value before the first
        round.
      going: gets the checks of the last round by name and returns conditions, which must all be true for another one.
      asides: tensors that only the last round computes, and only if their placeholder in `wants` is fed with True.

    Attributes:
      rounds: the placeholder for the number of rounds, 1 by default.
      wants: a placeholder for each aside, False by default.
      outputs: `rounds`, the number of rounds that were done; the checks and asides of the last round.

    Raises:
      CannotRebuild: the step cannot run inside a loop.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     count = tf.get_variable('count', initializer=0, use_resource=True)
      ...     step = count.assign_add(1)
      ...     repeated = RepeatedStep(step.op, {}, lambda checks: [], {'count': tf.identity(step)})
      ...     session.run(count.initializer)
      ...     done = session.run(repeated.outputs, {repeated.rounds: 5, repeated.wants['count']: True})
      >>> int(done['rounds']), int(done['count'])
      (5, 5)
    """

    def __init__(
        self,
        operation: tf.Operation | tf.Tensor,
        checks: Mapping[str, tuple[tf.Tensor, tf.Tensor]],
        going: Callable[[Mapping[str, tf.Tensor]], Sequence[tf.Tensor]],
        asides: Mapping[str, tf.Tensor],
    ) -> None:
        targets = [operation, *(tensor for tensor, _ in checks.values())]
        step = Subgraph(targets)
        parts = {name: Subgraph([tensor], known=step.operations) for name, tensor in asides.items()}
        # Tensors of the step that asides read must be outputs of the rebuilt step.
        boundary = {name: tensor for part in parts.values() for name, tensor in part.boundary.items()}
        if boundary:
            step = Subgraph([*targets, *boundary.values()])
        self.rounds = tf.placeholder_with_default(tf.constant(1, tf.int64), [], name="moxing/rounds")
        self.wants = {
            name: tf.placeholder_with_default(False, [], name=f"moxing/wants_{number}")
            for number, name in enumerate(asides)
        }

        def body(round_: tf.Tensor, *_: tf.Tensor) -> list[tf.Tensor]:
            built = step.build({})
            with tf.control_dependencies([built[0]]):
                outputs = [round_ + 1]
            outputs.extend(built[1 : len(targets)])
            for output in outputs:
                output.set_shape([])
            inner = dict(zip(boundary, built[len(targets) :], strict=True))
            for number, (name, part) in enumerate(parts.items()):
                last = tf.logical_and(self.wants[name], tf.equal(round_ + 1, self.rounds))
                outputs.append(_when(last, part, inner, f"aside_{number}", asides[name]))
            return outputs

        def more(round_: tf.Tensor, *others: tf.Tensor) -> tf.Tensor:
            conditions = [round_ < self.rounds, *going(dict(zip(checks, others, strict=False)))]
            return conditions[0] if len(conditions) == 1 else tf.reduce_all(tf.stack(conditions))

        start = {"rounds": tf.constant(0, tf.int64), **{name: value for name, (_, value) in checks.items()}}
        shapes = [value.shape for value in start.values()] + [tensor.shape for tensor in asides.values()]
        start |= {name: tf.constant(_nothing(tensor)) for name, tensor in asides.items()}
        # One iteration at a time: parallel ones would race on the variables.
        outputs = tf.while_loop(more, body, list(start.values()), shape_invariants=shapes, parallel_iterations=1)
        self.outputs = dict(zip(start, outputs if isinstance(outputs, list | tuple) else [outputs], strict=True))


def _nothing(aside: tf.Tensor) -> Any:
    """The value of an aside that was not computed."""
    sizes = [] if aside.shape.rank is None else [size or 0 for size in aside.shape.as_list()]
    empty = b"" if aside.dtype == tf.string else 0
    return np.full(sizes, empty, object if aside.dtype == tf.string else aside.dtype.as_numpy_dtype)


def _when(
    condition: tf.Tensor, part: Subgraph, inner: Mapping[str, tf.Tensor], name: str, aside: tf.Tensor
) -> tf.Tensor:
    replacements = {key: inner[key] for key in part.boundary}
    result = tf.cond(condition, lambda: part.build(replacements, name)[0], lambda: tf.constant(_nothing(aside)))
    result.set_shape(aside.shape)
    return result

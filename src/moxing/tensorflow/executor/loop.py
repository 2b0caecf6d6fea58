"""Many steps per `session.run`.

The step is built once, normally. `StepLoop` derives a `tf.while_loop` from it whose body is the same step, with
variables and iterators taken from outside. One loop with a fed number of rounds serves every number of steps, so
that the graph is optimised once and random operations keep one sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.graph import Step
from moxing.tensorflow.executor.ledger import LedgerValues
from moxing.tf1.surgery import CannotRebuild, Part

#: A signal is handled between two calls, so one must not take longer than about this.
SECONDS_PER_CALL = 0.5

#: What `Step.checks` say before the first round: value and type.
_BEFORE = {
    "finite": (True, tf.bool),
    "guard": (0, tf.int32),
    "halt": (0, tf.int32),
    "next_steps": (1, tf.int64),
    "reached": (0, tf.int32),
}


@dataclass(frozen=True)
class Progress:
    """Where a call of `advance` left the run.

    Attributes:
      global_step: the training step counter.
      ledger: samples, steps, log_info.
      finite: false when a loss was NaN or infinite in the last step.
      ended: true when the data ended.
      halt: not 0 when all workers stop together: 1 because a hook asked for it, 2 because of a signal.
      next_steps: how many steps all workers do in the next call, where they must agree.
      summary: the serialised summaries of the last step, if they were asked for.
      probes: `Step.probes` of the last step, if they were asked for.
      guard: not 0 when a tensor of `Step.guarded` was not finite in the last step: its number, from 1.
    """

    global_step: int
    ledger: LedgerValues
    finite: bool = True
    ended: bool = False
    halt: int = 0
    next_steps: int = 1
    summary: bytes | None = None
    probes: Mapping[str, float] = field(default_factory=dict)
    guard: int = 0


class Stepper:
    """Runs a step, one per `session.run`. This is what hooks that look at every step need.

    Args:
      step: the step to run.
    """

    many = False

    def __init__(self, step: Step) -> None:
        self._step = step
        self._asides = _asides(step)
        with tf.control_dependencies([step.operation, *step.checks.values()]):
            self._after = self._state()
        self._now = self._state()

    def _state(self) -> dict[str, Any]:
        return {"global_step": self._step.global_step.read_value(), "ledger": self._step.ledger.read()}

    def advance(self, run: Any, steps: int, with_summary: bool = False, with_probes: bool = False) -> Progress:
        """Does one step.

        Args:
          run: a function like `session.run`, of one argument, the fetches.
          steps: at most how many steps to do.
          with_summary: also compute the summaries.
          with_probes: also compute the probes.
        """
        wanted = {"summary": with_summary, "probes": with_probes}
        asides = {name: tensor for name, tensor in self._asides.items() if wanted[name]}
        return self._progress(run({"state": self._after, **self._step.checks, **asides}), with_probes=with_probes)

    def current(self, session: tf.Session, ended: bool = False) -> Progress:
        """The state without a step; after the end of the data for instance."""
        return self._progress({"state": session.run(self._now)}, ended)

    def _progress(self, values: dict[str, Any], ended: bool = False, with_probes: bool = False) -> Progress:
        return Progress(
            global_step=int(values["state"]["global_step"]),
            ledger=self._step.ledger.decode(values["state"]["ledger"]),
            finite=bool(values.get("finite", True)),
            ended=ended,
            halt=int(values.get("halt", 0)),
            next_steps=int(values.get("next_steps", 1)),
            summary=values.get("summary") or None,
            probes=dict(zip(self._step.probes, values["probes"].tolist(), strict=True))
            if with_probes and "probes" in values
            else {},
            guard=int(values.get("guard", 0)),
        )


class StepLoop(Stepper):
    """Runs many steps per `session.run`. Raises `CannotRebuild` where the step cannot stand in a loop."""

    many = True

    def __init__(self, step: Step) -> None:
        self._rounds = tf.placeholder_with_default(tf.constant(1, tf.int64), [], name="moxing/rounds")
        self._wants = {
            name: tf.placeholder_with_default(False, [], name=f"moxing/wants_{name}") for name in _asides(step)
        }
        self._loop = self._build_loop(step)
        super().__init__(step)
        with tf.control_dependencies([output.op for output in self._loop.values()]):
            self._after = self._state()

    def advance(self, run: Any, steps: int, with_summary: bool = False, with_probes: bool = False) -> Progress:
        """Does up to `steps` steps in one call; a loss that is not finite ends it early."""
        wanted = {"summary": with_summary, "probes": with_probes}
        feed = {self._rounds: steps, **{wants: wanted[name] for name, wants in self._wants.items()}}
        return self._progress(run({"state": self._after, **self._loop}, feed), with_probes=with_probes)

    def _build_loop(self, step: Step) -> dict[str, tf.Tensor]:
        targets = [step.operation, *step.checks.values()]
        body_part = Part(targets)
        asides = _asides(step)
        nothing = {name: _nothing(tensor) for name, tensor in asides.items()}
        parts = {name: Part([tensor], known=body_part.operations) for name, tensor in asides.items()}
        # What they read from the step must come out of the rebuilt step.
        boundary = {name: tensor for part in parts.values() for name, tensor in part.boundary.items()}
        if boundary:
            body_part = Part([*targets, *boundary.values()])

        def body(round_: tf.Tensor, *_: tf.Tensor) -> list[tf.Tensor]:
            built = body_part.build({})
            with tf.control_dependencies([built[0]]):
                outputs = [round_ + 1]
            outputs.extend(built[1 : len(targets)])
            for output in outputs:
                output.set_shape([])
            inner = dict(zip(boundary, built[len(targets) :], strict=True))
            for name, part in parts.items():
                last = tf.logical_and(self._wants[name], tf.equal(round_ + 1, self._rounds))
                outputs.append(_when(last, part, inner, name, nothing[name]))
            return outputs

        def more(round_: tf.Tensor, *others: tf.Tensor) -> tf.Tensor:
            going = [round_ < self._rounds]
            for name, value in zip(step.checks, others, strict=False):
                if name != "next_steps":
                    going.append(value if name == "finite" else tf.equal(value, 0))
            return going[0] if len(going) == 1 else tf.reduce_all(tf.stack(going))

        start = {"rounds": tf.constant(0, tf.int64)}
        start.update({name: tf.constant(*_BEFORE[name]) for name in step.checks})
        start.update({name: tf.constant(value) for name, value in nothing.items()})
        # One iteration at a time, or they race for the variables.
        outputs = tf.while_loop(more, body, list(start.values()), parallel_iterations=1)
        return dict(zip(start, outputs if isinstance(outputs, list | tuple) else [outputs], strict=True))


def _asides(step: Step) -> dict[str, tf.Tensor]:
    """What is computed beside a step only when it is asked for."""
    asides = {} if step.summary is None else {"summary": step.summary}
    if step.probes:
        asides["probes"] = tf.stack(list(step.probes.values()), name="moxing/probes/all")
    return asides


def _nothing(aside: tf.Tensor) -> Any:
    return b"" if aside.dtype == tf.string else np.zeros(aside.shape, aside.dtype.as_numpy_dtype)


def _when(condition: tf.Tensor, part: Part, inner: Mapping[str, tf.Tensor], name: str, otherwise: Any) -> tf.Tensor:
    replacements = {key: inner[key] for key in part.boundary}
    result = tf.cond(condition, lambda: part.build(replacements, name)[0], lambda: tf.constant(otherwise))
    result.set_shape(np.shape(otherwise))
    return result


def make_stepper(step: Step, every_step: bool) -> Stepper:
    """The fastest way to run `step`: a loop, or single steps where `every_step` asks for them."""
    if every_step:
        return Stepper(step)
    try:
        return StepLoop(step)
    except CannotRebuild as reason:
        tf.logging.debug("One step per session.run: %s.", reason)
        return Stepper(step)

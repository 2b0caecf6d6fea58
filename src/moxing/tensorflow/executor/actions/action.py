"""What a run does between steps. An action says when it is due, and does it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from moxing.tensorflow.executor.loop.progress import Aside, Progress

#: Steps until something that has no period of its own.
NEVER = 2**62


class NotFiniteError(RuntimeError):
    """A loss or a variable is NaN or infinite: the training has diverged.

    Args:
      what: a sentence that names what is not finite.
      checkpoint: the last good checkpoint.
    """

    def __init__(self, what: str, checkpoint: str | None = None) -> None:
        kept = f"The last good checkpoint is {checkpoint}" if checkpoint else "No checkpoint was written"
        advice = "look for NaN in the data, lower the learning rate or clip gradients, and run again."
        super().__init__(f"{what} {kept}; {advice}")
        self.what = what


class Action:
    """The base class of actions. Every method has a default that does nothing; override what you need.

    `done` counts the steps before the next one: `global_step` in TRAIN (an asynchronous worker's own steps), the steps
    of this run in the other modes.
    """

    def steps_until(self, done: int) -> int:
        """How many steps may run, at least one, before this action is due."""
        return NEVER

    def wants(self, done: int) -> Collection[Aside]:
        """What the step that brings the count to `done` must compute for this action."""
        return ()

    def act(self, done: int, progress: Progress) -> None:
        """Called after every group of steps; does its work if it is due."""

    def finish(self, done: int, progress: Progress) -> None:
        """Called once, after the last step."""

    def pause(self, seconds: float) -> None:
        """Called when the run spent `seconds` on something other than training, such as an evaluation."""

    def variables_changed(self) -> None:
        """Called when the variables were replaced, by the best ones for instance, at the same step."""

    def recover(self, error: NotFiniteError) -> bool:
        """Called when a value is not finite. Returns True if the run can continue from an earlier checkpoint."""
        return False

    def data_failed(self, done: int, progress: Progress) -> None:
        """Called before the run ends because its data failed. The variables are good."""

    def state(self) -> Mapping[str, Any]:
        """What a resumed run must know, as JSON by unique keys. Saved with every checkpoint."""
        return {}


def until_index(done: int, period: int) -> int:
    """Steps until the number of the last step, counted from 0, is a multiple of `period`.

    Example:
      >>> until_index(0, 10), until_index(1, 10), until_index(11, 10)
      (1, 10, 10)
    """
    return (period - done % period) % period + 1 if period else NEVER


def until_count(done: int, period: int | None) -> int:
    """Steps until the count of steps is a multiple of `period`.

    Example:
      >>> until_count(0, 100), until_count(30, 100)
      (100, 70)
    """
    return period - done % period if period else NEVER

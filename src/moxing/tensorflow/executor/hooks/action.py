"""What the run itself does beside the steps: an action says when it is due, and does it."""

from __future__ import annotations

from typing import Protocol

from moxing.tensorflow.executor.loop import Progress

#: Steps until something that has no period of its own.
NEVER = 2**62


class Action(Protocol):
    """Something that happens at certain steps.

    `done` counts the steps before the next one: `global_step` in TRAIN, this run's own steps elsewhere.
    """

    def steps_until(self, done: int) -> int:
        """How many steps to run, at least one, before this action is due."""

    def act(self, done: int, progress: Progress) -> None:
        """Called after every group of steps, with `done` steps done; does its work if it is due."""

    def finish(self, done: int, progress: Progress) -> None:
        """Called once, after the last step."""


def until_index(done: int, period: int) -> int:
    """Steps until the last step's number, counted from 0, is a multiple of `period`.

    Example:
      >>> until_index(0, 10), until_index(1, 10), until_index(11, 10)
      (1, 10, 10)
    """
    return (period - done % period) % period + 1 if period else NEVER


def until_count(done: int, period: int | None) -> int:
    """Steps until the number of steps done is a multiple of `period`.

    Example:
      >>> until_count(0, 100), until_count(30, 100)
      (100, 70)
    """
    return period - done % period if period else NEVER

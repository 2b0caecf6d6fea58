"""Runs an evaluation branch."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.evaluation.branch import Branch
from moxing.tensorflow.executor.loop.progress import Progress
from moxing.tensorflow.executor.loop.signals import StopSignal
from moxing.tensorflow.executor.loop.step_loop import SECONDS_PER_CALL


class Evaluator:
    """Runs a branch from the start of its data. Workers that share the data all get the means over all of it.

    Args:
      branch: the branch.
      session: the session to run in.
      stop: ends an evaluation early.
      all_gather: `(name, value)`; exchanges a value between the workers that evaluate together.
    """

    def __init__(
        self, branch: Branch, session: tf.Session, stop: StopSignal, all_gather: Callable[[str, Any], list[Any]]
    ) -> None:
        self._branch, self._session, self._stop, self._all_gather = branch, session, stop, all_gather
        self._seconds_per_step: float | None = None
        self._count = 0
        self._warned = False

    def run(self, samples: int | None) -> dict[int, dict[str, float]] | None:
        """The means of the metrics over `samples` samples (None: all), by index of the hook. None after a signal."""
        if samples is None and self._branch.inputs.endless:
            raise ValueError(
                "The data of input_fn in inter_mode never ends: give samples_in_eval, the number of samples of an "
                "evaluation."
            )
        self._count += 1
        parts = self._all_gather(f"{self._branch.scope}/{self._count}", self._run_shard(samples))
        if not all(parts):
            # A worker got a signal; all leave.
            self._stop.number = self._stop.number or signal.SIGTERM
            return None
        total = sum(part["samples"] for part in parts)
        if samples is not None and total < samples and not self._warned:
            self._warned = True
            tf.logging.warning(
                "samples_in_eval is %d, but the data of input_fn in inter_mode has only %d samples; using all of them.",
                samples,
                total,
            )
        if not total:
            raise ValueError("input_fn returned no data in inter_mode: its dataset ended before the first batch.")
        with_data = [part for part in parts if part["samples"]]
        return {
            index: {
                name: sum(part["means"][f"{index}/{name}"] * (part["samples"] / total) for part in with_data)
                for name in hook.monitor_info
            }
            for index, hook in self._branch.hooks.items()
        }

    def _run_shard(self, samples: int | None) -> dict[str, Any]:
        """Samples and means of this worker's shard of the data; empty after a signal."""
        branch = self._branch
        self._session.run(branch.restart, {branch.limit: -1 if samples is None else samples})
        progress, steps = branch.stepper.current(self._session), 0
        batch_size = branch.batch_size
        needed = -(-branch.share.part_of(samples) // batch_size) if samples is not None and batch_size else None
        while not progress.ended and (needed is None or steps < needed):
            if self._stop.number is not None:
                return {}
            progress = self._advance(progress, needed)
            steps = progress.ledger.steps
        return {"samples": progress.ledger.samples, "means": progress.ledger.means}

    def _advance(self, before: Progress, needed: int | None) -> Progress:
        count = 1 if self._seconds_per_step is None else max(1, int(SECONDS_PER_CALL / self._seconds_per_step))
        done = before.ledger.steps
        count = count if needed is None else min(count, needed - done)
        started = time.perf_counter()
        try:
            progress = self._branch.stepper.advance(
                lambda fetches, feed=None: self._session.run(fetches, {**self._branch.feeds, **(feed or {})}), count
            )
        except tf.errors.OutOfRangeError:
            return self._branch.stepper.current(self._session, ended=True)
        if done:  # the first step also waits for the data
            seconds = max(time.perf_counter() - started, 1e-9)
            self._seconds_per_step = seconds / max(progress.ledger.steps - done, 1)
        elif self._seconds_per_step is None:
            self._seconds_per_step = time.perf_counter() - started
        return progress

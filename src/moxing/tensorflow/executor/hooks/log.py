"""The log lines of a run, in the form that MoXing printed them."""

from __future__ import annotations

import time

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.hooks.action import until_count, until_index
from moxing.tensorflow.executor.loop import Progress
from moxing.tensorflow.executor.specs import ModeKeys

_RATE_PERIOD = 100


class LogAction:
    """Prints step, throughput and log_info every n steps; at the end the last line, in EVAL the means.

    Args:
      config: the run.
    """

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._time = time.perf_counter()
        self._steps = 0
        self._samples = 0
        self._logged: int | None = None

    def steps_until(self, done: int) -> int:
        return until_index(done, self._config.log_every)

    def act(self, done: int, progress: Progress) -> None:
        if self._config.log_every and (done - 1) % self._config.log_every == 0:
            self._print(done, progress)

    def finish(self, done: int, progress: Progress) -> None:
        if progress.ledger.steps and self._logged != done and self._config.mode is not ModeKeys.PREDICT:
            self._print(done, progress)
        if self._config.mode is ModeKeys.EVAL:
            fields = [f"{name}: {value:.3f}" for name, value in progress.ledger.means.items()]
            tf.logging.info("[EVAL] %s", "\t".join([_where(done, progress), f"samples: {progress.ledger.samples}", *fields]))
        if self._config.mode is ModeKeys.PREDICT:
            tf.logging.info("\t[%d examples]", progress.ledger.samples)

    def _print(self, done: int, progress: Progress) -> None:
        now = time.perf_counter()
        if self._config.batch_size is not None:
            samples = (progress.ledger.steps - self._steps) * self._config.batch_size
        else:
            samples = progress.ledger.samples - self._samples
        rate = samples / max(now - self._time, 1e-9)
        fields = [f"{name}: {value:.3f}" for name, value in progress.ledger.last.items()]
        tf.logging.info("%s", "\t".join([_where(done, progress), f"sample/sec: {rate:.3f}", *fields]))
        self._time, self._logged = now, done
        self._steps, self._samples = progress.ledger.steps, progress.ledger.samples


class RateAction:
    """Prints `global_step/sec` every 100 training steps."""

    def __init__(self) -> None:
        self._time: float | None = None
        self._step = 0

    def steps_until(self, done: int) -> int:
        return until_count(done, _RATE_PERIOD)

    def act(self, done: int, progress: Progress) -> None:
        now = time.perf_counter()
        if done % _RATE_PERIOD == 0:
            if self._time is not None:
                tf.logging.info("global_step/sec: %g", (done - self._step) / max(now - self._time, 1e-9))
            self._time, self._step = now, done
        elif self._time is None:
            # From the second group of steps on: the first pays for building the graph.
            self._time, self._step = now, done

    def finish(self, done: int, progress: Progress) -> None:
        """Nothing is left to do."""


def _where(done: int, progress: Progress) -> str:
    """`step: S(global step: G)`: both count from 0, and S goes on from the restored step."""
    trained = progress.global_step - 1 if progress.global_step and done == progress.global_step else progress.global_step
    return f"step: {max(done - 1, 0)}(global step: {trained})"


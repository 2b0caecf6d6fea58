"""The log lines of a run, in the form that MoXing printed them."""

from __future__ import annotations

import time
from collections.abc import Mapping

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.hooks.action import until_index
from moxing.tensorflow.executor.loop import Progress
from moxing.tensorflow.executor.specs import ModeKeys

_RATE_PERIOD = 100


class LogAction:
    """Prints step, throughput and log_info every n steps; at the end the last line, in EVAL the means.

    Args:
      config: the run.
      towers: how many batches a step takes.
    """

    def __init__(self, config: RunConfig, towers: int = 1) -> None:
        self._config, self._towers = config, towers
        self._time = time.perf_counter()
        self._steps = 0
        self._samples = 0
        self._logged: int | None = None

    def steps_until(self, done: int) -> int:
        return until_index(done, self._config.log_every)

    def act(self, done: int, progress: Progress) -> None:
        if self._config.log_every and (done - 1) % self._config.log_every == 0:
            self._print(done, progress)

    def pause(self, seconds: float) -> None:
        """So long no step was done, and the throughput is that of the steps."""
        self._time += seconds

    def finish(self, done: int, progress: Progress) -> None:
        due = self._config.log_every and self._config.mode is not ModeKeys.PREDICT
        if due and progress.ledger.steps and self._logged != done:
            self._print(done, progress)
        if self._config.mode is ModeKeys.EVAL:
            fields = [f"samples: {progress.ledger.samples}", *_fields(progress.ledger.means)]
            tf.logging.info("[EVAL] %s", "\t".join([self._where(done, progress), *fields]))
        if self._config.mode is ModeKeys.PREDICT:
            tf.logging.info("\t[%d examples]", progress.ledger.samples)

    def _where(self, done: int, progress: Progress) -> str:
        """`step: S(global step: G)`: the number of the last step, from 0; outside TRAIN G is the restored step."""
        step = max(done - 1, 0)
        trained = max(progress.global_step - 1, 0) if self._config.mode is ModeKeys.TRAIN else progress.global_step
        return f"step: {step}(global step: {trained})"

    def _print(self, done: int, progress: Progress) -> None:
        now = time.perf_counter()
        if self._config.batch_size is not None:
            samples = (progress.ledger.steps - self._steps) * self._config.batch_size * self._towers
        else:
            samples = progress.ledger.samples - self._samples
        rate = samples / max(now - self._time, 1e-9)
        fields = [f"sample/sec: {rate:.3f}", *_fields(progress.ledger.last)]
        tf.logging.info("%s", "\t".join([self._where(done, progress), *fields]))
        self._time, self._logged = now, done
        self._steps, self._samples = progress.ledger.steps, progress.ledger.samples


class RateAction:
    """Prints `global_step/sec` every 100 training steps."""

    def __init__(self) -> None:
        self._time: float | None = None
        self._step = 0

    def steps_until(self, done: int) -> int:
        # At the log lines' own steps, so that no group of steps is cut in two for it.
        return until_index(done, _RATE_PERIOD)

    def act(self, done: int, progress: Progress) -> None:
        now = time.perf_counter()
        if self._time is not None and (done - 1) % _RATE_PERIOD:
            return
        if self._time is not None and done > self._step:  # a restored checkpoint takes the steps back
            tf.logging.info("global_step/sec: %g", (done - self._step) / max(now - self._time, 1e-9))
        # The first group of steps pays for starting up and only starts the clock.
        self._time, self._step = now, done

    def pause(self, seconds: float) -> None:
        """So long no step was done."""
        if self._time is not None:
            self._time += seconds

    def finish(self, done: int, progress: Progress) -> None:
        """Nothing is left to do."""


def _fields(values: Mapping[str, float]) -> list[str]:
    return [f"{name}: {value:.3f}" for name, value in values.items()]

"""The log lines of a run, in MoXing's format."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.actions.action import Action, until_index
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.loop.progress import Progress
from moxing.tensorflow.executor.specs import ModeKeys

_RATE_PERIOD = 100


@dataclass(eq=False)
class LogAction(Action):
    """Logs step, throughput and log_info every n steps; at the end the last step, and in EVAL the means.

    Attributes:
      config: the arguments of the run.
      towers: the number of batches in a step.
    """

    config: RunConfig
    towers: int = 1
    _time: float = field(default_factory=lambda: time.perf_counter(), init=False)
    _steps: int = field(default=0, init=False)
    _samples: int = field(default=0, init=False)
    _logged: int | None = field(default=None, init=False)

    def steps_until(self, done: int) -> int:
        return until_index(done, self.config.log_every)

    def act(self, done: int, progress: Progress) -> None:
        if self.config.log_every and (done - 1) % self.config.log_every == 0:
            self._print(done, progress)

    def pause(self, seconds: float) -> None:
        self._time += seconds

    def finish(self, done: int, progress: Progress) -> None:
        due = self.config.log_every and self.config.mode is not ModeKeys.PREDICT
        if due and progress.ledger.steps and self._logged != done:
            self._print(done, progress)
        if self.config.mode is ModeKeys.EVAL:
            fields = [f"samples: {progress.ledger.samples}", *_fields(progress.ledger.means)]
            tf.logging.info("[EVAL] %s", "\t".join([self._where(done, progress), *fields]))
        if self.config.mode is ModeKeys.PREDICT:
            tf.logging.info("\t[%d examples]", progress.ledger.samples)

    def _where(self, done: int, progress: Progress) -> str:
        """`step: S(global step: G)`, both counted from 0; outside TRAIN, G is the step of the checkpoint."""
        step = max(done - 1, 0)
        trained = max(progress.global_step - 1, 0) if self.config.mode is ModeKeys.TRAIN else progress.global_step
        return f"step: {step}(global step: {trained})"

    def _print(self, done: int, progress: Progress) -> None:
        now = time.perf_counter()
        if self.config.batch_size is not None:
            samples = (progress.ledger.steps - self._steps) * self.config.batch_size * self.towers
        else:
            samples = progress.ledger.samples - self._samples
        rate = samples / max(now - self._time, 1e-9)
        fields = [f"sample/sec: {rate:.3f}", *_fields(progress.ledger.last)]
        tf.logging.info("%s", "\t".join([self._where(done, progress), *fields]))
        self._time, self._logged = now, done
        self._steps, self._samples = progress.ledger.steps, progress.ledger.samples


@dataclass(eq=False)
class RateAction(Action):
    """Logs `global_step/sec` every 100 training steps."""

    _time: float | None = field(default=None, init=False)
    _step: int = field(default=0, init=False)

    def steps_until(self, done: int) -> int:
        # Due at the same steps as the log lines, so that it does not split a group of steps.
        return until_index(done, _RATE_PERIOD)

    def act(self, done: int, progress: Progress) -> None:
        now = time.perf_counter()
        if self._time is not None and (done - 1) % _RATE_PERIOD:
            return
        step = progress.global_step
        if self._time is not None and step > self._step:  # NanGuardHook may have gone back
            tf.logging.info("global_step/sec: %g", (step - self._step) / max(now - self._time, 1e-9))
        # The first group includes start-up costs and only starts the clock.
        self._time, self._step = now, step

    def pause(self, seconds: float) -> None:
        if self._time is not None:
            self._time += seconds


def _fields(values: Mapping[str, float]) -> list[str]:
    return [f"{name}: {value:.3f}" for name, value in values.items()]

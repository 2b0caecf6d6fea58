"""The places at which an Estimator deals with the other processes of its job.

`connect` hands them to a `Job`: the server of a process, what a parameter server does, and the waiting of an evaluator.
"""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

import tensorflow.compat.v1 as tf

from moxing.tf1.estimator import repair
from moxing.tf1.module_proxy import ModuleProxy

_PACKAGE = "tensorflow_estimator.python.estimator"


class Evaluator(Protocol):
    """Decides how long an evaluator goes on."""

    def before_eval(self) -> bool:
        """Called before it looks for a checkpoint; False ends it."""

    def after_eval(self, eval_result: Any) -> bool:
        """Called after it has looked for one; False ends it."""


class Job(Protocol):
    """What MoXing does about the other processes."""

    def join(self, config: Any) -> None:
        """Starts the server of a chief or a worker and waits for the others. `config` is a `RunConfig`."""

    def count_training(self, config: Any) -> None:
        """Called for every `Estimator.train`, before it looks whether there is anything to do."""

    def serve(self, config: Any) -> NoReturn:
        """Is a parameter server until all workers have ended; does not return."""

    def evaluator(self) -> Evaluator:
        """Called when this process becomes an evaluator."""

    def sleep(self, seconds: float) -> None:
        """Waits, as an evaluator between two evaluations or a worker before it starts."""


def connect(job: Job) -> None:
    """Makes `job` take part in every Estimator job. Call it once."""
    repair.load()
    training: Any = importlib.import_module(f"{_PACKAGE}.training")
    executor, base = training._TrainingExecutor, importlib.import_module(f"{_PACKAGE}.estimator").Estimator
    run_evaluator: Callable[[Any], Any] = executor.run_evaluator
    train: Callable[..., Any] = base.train

    @functools.wraps(run_evaluator)
    def run_as_evaluator(self: Any) -> Any:
        self._continuous_eval_listener = job.evaluator()
        return run_evaluator(self)

    @functools.wraps(train)
    def train_or_serve(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.config.task_type == "ps":
            job.serve(self.config)  # without train_and_evaluate TensorFlow 1 only raised an error
        job.count_training(self.config)
        return train(self, *args, **kwargs)

    evaluator = executor._Evaluator
    evaluator.evaluate_and_export = _evaluating_newest(evaluator.evaluate_and_export)
    executor._start_std_server = lambda self, config: job.join(config)
    executor.run_ps = lambda self: job.serve(self.estimator.config)
    executor.run_evaluator = run_as_evaluator
    base.train = train_or_serve
    training.time = ModuleProxy(time, {"sleep": job.sleep})


def _evaluating_newest(evaluate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Evaluates the newest checkpoint again if the training has removed it in the meantime."""

    @functools.wraps(evaluate)
    def evaluate_newest(self: Any) -> Any:
        while True:
            newest = self._estimator.latest_checkpoint()
            try:
                return evaluate(self)
            except (ValueError, tf.errors.NotFoundError, tf.errors.DataLossError):
                if newest is None or tf.train.checkpoint_exists(newest):
                    raise
                tf.logging.info("The training has removed %s before it was evaluated; taking the newest one.", newest)

    return evaluate_newest

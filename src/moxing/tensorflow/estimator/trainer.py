"""MoXing's part in the training of an Estimator: its loop, the position in the data, signals."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.estimator.job import check_job
from moxing.tensorflow.estimator.loop_hook import LoopHook
from moxing.tensorflow.estimator.resume import PositionListener, drop_damaged, interrupted_at
from moxing.tensorflow.executor.checkpoints.position import START, Position
from moxing.tensorflow.executor.loop.signals import StopSignal, watch_signals
from moxing.tf1.estimator import known_hooks
from moxing.tf1.estimator.graph_files import write_lean_graph
from moxing.tf1.graph import keras_layers
from moxing.tf1.graph.data_arrays import arrays_outside_graph
from moxing.tf1.graph.data_seeds import data_seeds


@dataclass
class Training:
    """One call of `Estimator.train`.

    Attributes:
      start: where in the data it starts.
      knows_position: whether the position in the data is known: `input_fn` has returned a dataset.
      spec: what `model_fn` returned.
      stop: whether a signal asked it to stop.
      listener: writes the position; None without checkpoints or a position.
      loop: runs the steps.
    """

    start: Position = START
    knows_position: bool = False
    spec: Any = None
    stop: StopSignal = field(default_factory=StopSignal)
    listener: PositionListener | None = None
    loop: LoopHook | None = None

    def position(self) -> Position:
        """The position in the data after the steps so far."""
        return replace(self.start, elements=self.start.elements + (self.loop.steps if self.loop else 0))


class EstimatorTrainer:
    """Takes part in every training of an Estimator, see `moxing.tf1.estimator.seams`."""

    def __init__(self) -> None:
        self._current = threading.local()
        # As in TensorFlow 1, tf.layers draw their first weights from the graph's seed, `RunConfig.tf_random_seed`.
        keras_layers.install_graph_seeds()

    def read_input(self, estimator: Any, input_fn: Callable[[], Any], parse: Callable[[Any], Any]) -> Any:
        """Calls `input_fn`. A dataset continues where an interrupted training was."""
        check_job()
        if estimator.config.is_chief:
            drop_damaged(estimator.model_dir)
        start = interrupted_at(estimator.model_dir)
        seed = random.SystemRandom().randrange(1, 2**31) if start.seed is None else start.seed
        training = self._current.training = Training(start=replace(start, seed=seed))
        with data_seeds(seed), arrays_outside_graph():
            returned = input_fn()
        if isinstance(returned, tf.data.Dataset | tf.compat.v2.data.Dataset):
            training.knows_position = True
            if start.elements:
                returned = returned.skip(start.elements)
            returned = returned.prefetch(tf.data.experimental.AUTOTUNE)
        elif start.elements:
            tf.logging.info(
                "Cannot resume the input position (input_fn returns no tf.data.Dataset); reading from the start."
            )
            training.start = replace(training.start, elements=0)
        return parse(returned)

    def train(self, estimator: Any, spec: Any, listeners: list[Any], train: Callable[[list[Any]], Any]) -> Any:
        """Trains with the step loop. After a signal it saves a checkpoint and leaves the process."""
        training: Training = self._current.__dict__.pop("training", None) or Training()
        training.spec = spec
        config = estimator.config
        saves = config.is_chief and (config.save_checkpoints_secs or config.save_checkpoints_steps)
        if saves and training.knows_position:
            training.listener = PositionListener(estimator.model_dir, training.position)
            listeners = [*listeners, training.listener]
        self._current.open = training
        try:
            with watch_signals() as training.stop:
                loss = train(listeners)
        finally:
            del self._current.open
        if training.stop.number is not None:
            saved = tf.train.latest_checkpoint(estimator.model_dir)
            outcome = f"saved {saved}. Run the same command again to resume from it" if saved else "no checkpoint"
            tf.logging.info("Stopped by signal %d: %s.", training.stop.number, outcome)
            raise SystemExit(training.stop.exit_code)
        return loss

    def open_session(self, open_session: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Adds the hook of the step loop."""
        training: Training | None = getattr(self._current, "open", None)
        if training is None:
            return open_session(**arguments)
        hooks = [*(arguments.pop("hooks", None) or ())]
        chief_hooks = [*arguments["chief_only_hooks"], *_session_hooks(arguments)] if arguments["is_chief"] else []
        arguments["chief_only_hooks"] = chief_hooks
        for hook in [*chief_hooks, *hooks]:
            if isinstance(hook, tf.train.CheckpointSaverHook):
                write_lean_graph(hook)
        training.loop = LoopHook(training.spec.train_op, training.spec.loss, [*chief_hooks, *hooks])
        session = open_session(**arguments, hooks=[*hooks, training.loop, _StopHook(training)])
        training.loop.follow(known_hooks.of_session(session))
        return session


class _StopHook(tf.train.SessionRunHook):
    """Ends the training after a signal."""

    def __init__(self, training: Training) -> None:
        self._training = training

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if self._training.stop.number is not None:
            if self._training.listener is not None:
                self._training.listener.interrupt()
            run_context.request_stop()


def _session_hooks(arguments: dict[str, Any]) -> list[tf.train.SessionRunHook]:
    """The hooks that `MonitoredTrainingSession` would add by itself. It must not add them again."""
    directory = arguments["checkpoint_dir"]
    log_every, summary_every = arguments["log_step_count_steps"], arguments["save_summaries_steps"]
    # Without a value it would take its defaults.
    arguments.update(log_step_count_steps=None, save_summaries_steps=None)
    hooks: list[tf.train.SessionRunHook] = []
    if directory and log_every:
        hooks.append(tf.train.StepCounterHook(every_n_steps=log_every, output_dir=directory))
    if directory and summary_every:
        hooks.append(
            tf.train.SummarySaverHook(save_steps=summary_every, output_dir=directory, scaffold=arguments["scaffold"])
        )
    return hooks

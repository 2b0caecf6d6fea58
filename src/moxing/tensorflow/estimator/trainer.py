"""MoXing's part in the training of an Estimator: its loop, the position in the data, signals."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.framework.util.terminal import has_terminal
from moxing.tensorflow.estimator.job import EstimatorJob
from moxing.tensorflow.estimator.loop_hook import LoopHook
from moxing.tensorflow.estimator.model_dir import (
    export_directory,
    is_url,
    local_checkpoint,
    local_model_dir,
    local_path,
    stage_of,
)
from moxing.tensorflow.estimator.progress_hook import ProgressHook
from moxing.tensorflow.estimator.resume import UNKNOWN, PositionListener, drop_damaged, interrupted_at, is_unknown
from moxing.tensorflow.estimator.shapes import check_shapes
from moxing.tensorflow.estimator.strategies import check_strategies, with_gpus
from moxing.tensorflow.executor.checkpoints.files import adopt_moved
from moxing.tensorflow.executor.checkpoints.lock import train_in
from moxing.tensorflow.executor.checkpoints.position import START, Position
from moxing.tensorflow.executor.loop.signals import StopSignal, watch_signals
from moxing.tf1.estimator import known_hooks
from moxing.tf1.estimator.graph_files import write_lean_graph
from moxing.tf1.graph import keras_layers, variable_fetches
from moxing.tf1.graph.data_arrays import arrays_outside_graph
from moxing.tf1.graph.data_seeds import data_seeds

_SYNC_GRACE_SECONDS = 2

#: Methods that need a trained model, and what they do with variables, for messages.
_READERS = {"evaluate": "evaluating", "predict": "predicting with"}


@dataclass
class Training:
    """One call of `Estimator.train`.

    Attributes:
      start: where in the data it starts.
      knows_position: whether the position in the data is known: `input_fn` has returned a dataset.
      spec: what `model_fn` returned.
      stop: whether a signal asked it to stop.
      listener: writes the position; None without checkpoints.
      loop: runs the steps.
      first: the global step at the start.
      replicas: elements of the data that a step takes: one for each replica of a strategy.
      contexts: closed when the training ends.
    """

    start: Position = START
    knows_position: bool = False
    spec: Any = None
    stop: StopSignal = field(default_factory=StopSignal)
    listener: PositionListener | None = None
    loop: LoopHook | None = None
    first: int = 0
    replicas: int = 1
    contexts: ExitStack = field(default_factory=ExitStack)

    def steps(self) -> int:
        """The number of steps so far."""
        return self.loop.steps if self.loop else 0

    def position(self) -> Position:
        """The position in the data after the steps so far."""
        if not self.knows_position:
            return UNKNOWN
        return replace(self.start, elements=self.start.elements + self.steps() * self.replicas)


class EstimatorTrainer:
    """Takes part in every training of an Estimator, see `moxing.tf1.estimator.seams`.

    Args:
      job: the job of this process.
      run_config: makes the `RunConfig` of an Estimator that was given none.
    """

    def __init__(self, job: EstimatorJob, run_config: Callable[[], Any]) -> None:
        self._job = job
        self._current = threading.local()
        self._run_config = run_config
        # As in TensorFlow 1, tf.layers draw their first weights from the graph's seed, `RunConfig.tf_random_seed`.
        keras_layers.install_graph_seeds()
        variable_fetches.install()  # hooks fetch variables by name

    def configure(self, config: Any, model_dir: str | None) -> tuple[Any, str | None]:
        """Replaces a `model_dir` on a store by the local directory that stands for it; adds GPUs of `--num_gpus`."""
        check_strategies(config)
        given = getattr(config, "model_dir", None)
        for path in (given, model_dir):
            if path and os.path.isfile(path):
                raise NotADirectoryError(20, f"model_dir={os.fspath(path)!r} is a file: expected a directory")
        local = local_model_dir(given, "RunConfig(model_dir)")
        if local != given:
            config = config.replace(model_dir=local)
        if FLAGS.get("num_gpus") not in (0, 1):
            config = with_gpus(self._run_config() if config is None else config)
        return config, local_model_dir(os.fspath(model_dir) if model_dir else model_dir, "Estimator(model_dir)")

    def warm_start(self, settings: Any) -> Any:
        """Fetches the checkpoint of a warm start from a store."""
        if isinstance(settings, str | bytes):
            return local_checkpoint(os.fsdecode(settings), "warm_start_from")
        path = getattr(settings, "ckpt_to_initialize_from", None)
        if not isinstance(path, str):
            return settings
        return settings._replace(ckpt_to_initialize_from=local_checkpoint(path, "ckpt_to_initialize_from"))

    @contextmanager
    def operation(self, estimator: Any, name: str, arguments: dict[str, Any]) -> Iterator[Callable[[Any], Any]]:
        """Fetches what a method reads from a store, and uploads what it writes."""
        if arguments.get("checkpoint_path"):
            arguments["checkpoint_path"] = local_checkpoint(arguments["checkpoint_path"], "checkpoint_path")
        with ExitStack() as contexts:
            stage = stage_of(estimator.model_dir)
            if stage is None:
                if name == "train" and estimator.config.is_chief:
                    contexts.enter_context(train_in(estimator.model_dir, "model_dir"))
                adopt_moved(estimator.model_dir)
            else:
                stage.update()
                trains = name == "train" and estimator.config.is_chief
                if trains or name == "evaluate" or name.startswith("export"):
                    contexts.enter_context(stage.writing(trains))
            if name in _READERS:
                _warn_without_checkpoint(estimator, name, arguments, stage.url if stage else estimator.model_dir)
            if name == "evaluate" and hasattr(self._current, "open"):
                arguments["hooks"] = [*(arguments.get("hooks") or ()), _LeaveEvaluationHook(self.is_stopping)]
            base: Any = arguments.get("export_dir_base")
            if not is_url(base):
                yield lambda result: result
            else:
                export = local_path(base) or contexts.enter_context(export_directory(base))
                arguments["export_dir_base"] = export
                yield lambda result: base.rstrip("/").encode() + result.removeprefix(export.encode())

    def is_stopping(self) -> bool:
        """Whether a signal has asked the open training to stop."""
        training: Training | None = getattr(self._current, "open", None)
        return training is not None and training.stop.number is not None

    def read_input(self, estimator: Any, input_fn: Callable[[], Any], parse: Callable[[Any], Any]) -> Any:
        """Calls `input_fn`. A dataset continues where an interrupted training was."""
        self._job.join(estimator.config)
        if estimator.config.is_chief:
            drop_damaged(estimator.model_dir)
        start = interrupted_at(estimator.model_dir)
        # Every worker has its own order: the chief's is the one that is resumed.
        seed = start.seed if estimator.config.is_chief else None
        seed = random.SystemRandom().randrange(1, 2**31) if seed is None else seed
        training = self._current.training = Training(start=replace(start, seed=seed))
        if estimator.config.train_distribute is not None:
            training.replicas = estimator.config.train_distribute.num_replicas_in_sync
        with data_seeds(seed), arrays_outside_graph():
            returned = input_fn()
        if isinstance(returned, tf.data.Dataset | tf.compat.v2.data.Dataset):
            training.knows_position = True
            if start.elements:
                tf.logging.info(
                    "Resuming: the data of input_fn continues at element %d (a batch, if the dataset makes batches).",
                    start.elements,
                )
                returned = returned.skip(start.elements)
            returned = returned.prefetch(tf.data.experimental.AUTOTUNE)
        elif start.elements or is_unknown(start):
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
        if config.is_chief:
            check_shapes(estimator.model_dir, spec.scaffold)
        saves = config.is_chief and (config.save_checkpoints_secs or config.save_checkpoints_steps)
        if saves:
            training.listener = PositionListener(estimator.model_dir, training.position)
            listeners = [*listeners, training.listener]
        self._current.open = training
        try:
            with watch_signals() as training.stop, self._job.training(training.stop), training.contexts:
                loss = train(listeners)
        except _StoppedInEvaluation:  # of a checkpoint that was just saved
            loss = None
        except tf.train.NanLossDuringTrainingError:
            tf.logging.error("The loss was not a number in step %d.", training.first + training.steps())
            raise
        finally:
            del self._current.open
        if training.start.elements and not training.steps() and training.stop.number is None:
            tf.logging.warning(
                "Nothing was trained: the checkpoint in %s continues after %d elements of the data of input_fn, which "
                "now ends before. The next training reads it from the start.",
                estimator.model_dir,
                training.start.elements,
            )
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
        # Before the others open the event file.
        for hook in [*arguments["chief_only_hooks"], *hooks]:
            if isinstance(hook, tf.train.CheckpointSaverHook):
                write_lean_graph(hook)
        known = [*arguments["chief_only_hooks"], *_session_hooks(arguments)] if arguments["is_chief"] else []
        known += hooks
        # Before the hook that saves the last checkpoint.
        arguments["chief_only_hooks"] = [*self._job.chief_hooks(), *arguments["chief_only_hooks"]]
        training.loop = LoopHook(training.spec.train_op, training.spec.loss, known, self._job.budget(known))
        if any(map(known_hooks.waits_for_workers, hooks)):
            # A thread of the chief waits for gradients that no worker computes any more, as long as this allows.
            arguments["stop_grace_period_secs"] = _SYNC_GRACE_SECONDS
        last: list[tf.train.SessionRunHook] = [training.loop, *self._job.hooks(), _StopHook(training)]
        if has_terminal():  # in a pipe there are only the log lines
            last.append(ProgressHook(training.spec.loss, training.steps, hooks, training.contexts))
        self._job.wait_for_chief()
        session = open_session(**arguments, hooks=[*hooks, *last])
        training.loop.follow(known_hooks.of_session(session))
        return session


class _StoppedInEvaluation(Exception):
    """A signal came while a training evaluated its checkpoint."""


class _LeaveEvaluationHook(tf.train.SessionRunHook):
    """Ends an evaluation inside a training after a signal. It has no result then, not one of a part of the data."""

    def __init__(self, is_stopping: Callable[[], bool]) -> None:
        self._is_stopping = is_stopping

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if self._is_stopping():
            raise _StoppedInEvaluation


class _StopHook(tf.train.SessionRunHook):
    """Ends the training after a signal."""

    def __init__(self, training: Training) -> None:
        self._training = training

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        self._training.first = int(session.run(tf.train.get_global_step())) - self._training.steps()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if self._training.stop.number is not None:
            if self._training.listener is not None:
                self._training.listener.interrupt()
            run_context.request_stop()


def _warn_without_checkpoint(estimator: Any, name: str, arguments: dict[str, Any], shown: str) -> None:
    """Warns where TensorFlow goes on with random weights: `model_dir` may be misspelled."""
    if arguments.get("checkpoint_path") or estimator._warm_start_settings is not None:
        return
    if tf.train.latest_checkpoint(estimator.model_dir) is None:
        tf.logging.warning("model_dir=%r has no checkpoint: %s freshly initialized variables.", shown, _READERS[name])


def _session_hooks(arguments: dict[str, Any]) -> list[tf.train.SessionRunHook]:
    """Hooks like those that `MonitoredTrainingSession` will add by itself, for their tensors."""
    directory = arguments["checkpoint_dir"]
    log_every, summary_every = arguments["log_step_count_steps"], arguments["save_summaries_steps"]
    hooks: list[tf.train.SessionRunHook] = []
    if directory and log_every:
        hooks.append(tf.train.StepCounterHook(every_n_steps=log_every, output_dir=directory))
    if directory and summary_every:
        hooks.append(
            tf.train.SummarySaverHook(save_steps=summary_every, output_dir=directory, scaffold=arguments["scaffold"])
        )
    for hook in hooks:
        hook.begin()
    return hooks

"""`mox.run`: checks its arguments, then builds, opens, loops and finishes a run."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, NoReturn

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.framework.util.terminal import has_terminal
from moxing.tensorflow.cluster import current_role
from moxing.tensorflow.datasets.bad_samples import open_bad_sample_log
from moxing.tensorflow.datasets.class_names import open_class_names
from moxing.tensorflow.datasets.raw.labels import write_labels
from moxing.tensorflow.executor.actions.action import Action
from moxing.tensorflow.executor.actions.context import RunContext
from moxing.tensorflow.executor.actions.log import LogAction, RateAction
from moxing.tensorflow.executor.actions.save import SaveAction
from moxing.tensorflow.executor.actions.summaries import EventFile, SummaryAction
from moxing.tensorflow.executor.build.step import build_step
from moxing.tensorflow.executor.checkpoints.choose import find_checkpoint
from moxing.tensorflow.executor.checkpoints.keeper import Keeper
from moxing.tensorflow.executor.checkpoints.labels import check_labels, labels_path, saved_labels
from moxing.tensorflow.executor.checkpoints.position import START, Position
from moxing.tensorflow.executor.checkpoints.restore import make_restore
from moxing.tensorflow.executor.config import DEFAULT, check_arguments
from moxing.tensorflow.executor.evaluation.branch import Evaluation, build_evaluation
from moxing.tensorflow.executor.evaluation.evaluations import evaluation_actions
from moxing.tensorflow.executor.export import check_version, export_model
from moxing.tensorflow.executor.hooks.user_hooks import hooks_of_run, reporting_end
from moxing.tensorflow.executor.job import Job, join_job
from moxing.tensorflow.executor.loop.progress_bar import progress_bar
from moxing.tensorflow.executor.loop.runner import Runner
from moxing.tensorflow.executor.loop.session import open_session
from moxing.tensorflow.executor.loop.signals import watch_signals
from moxing.tensorflow.executor.loop.step_loop import make_stepper
from moxing.tensorflow.executor.specs import ModeKeys, RunResult
from moxing.tensorflow.executor.store.stage import Stage, open_stage
from moxing.tensorflow.optimizer.wrappers.easgd import is_elastic
from moxing.tensorflow.parallel import choose_strategy
from moxing.tf1.graph.run_graph import run_graph


def run(
    input_fn: Any = None,
    output_fn: Any = None,
    model_fn: Any = None,
    optimizer_fn: Any = None,
    run_mode: Any = "invalid",
    inter_mode: Any = None,
    batch_size: int | None = None,
    auto_batch: bool = True,
    log_dir: str | None = None,
    max_number_of_steps: int = 0,
    checkpoint_path: str | None = None,
    log_every_n_steps: int | None = 10,
    output_every_n_steps: int | None = 0,
    save_summary_steps: int | None = 100,
    save_model_secs: Any = DEFAULT,
    export_model: Any = False,
    fetch_strategy_fn: Any = None,
    save_model_steps: Any = DEFAULT,
) -> RunResult:
    """Trains, evaluates or predicts.

    Args:
      input_fn: `(mode, **kwargs)`; returns tensors, a dict of them, or an `InputSpec`.
      output_fn: `(outputs)`; gets a list of dicts of arrays.
      model_fn: `(inputs, mode, **kwargs)`; returns a `ModelSpec`.
      optimizer_fn: `()`; returns an optimizer. For several losses a list of such functions. TRAIN only.
      run_mode: `ModeKeys.TRAIN`, `EVAL` or `PREDICT`.
      inter_mode: a second mode, such as `ModeKeys.EVAL`, for hooks that evaluate during training; TRAIN only.
      batch_size: samples per batch; None if `input_fn` returns batches.
      auto_batch: False if `input_fn` returns batches; `batch_size` is then only used for the logged throughput.
      log_dir: path or url for checkpoints, summaries and exported models; None writes nothing.
      max_number_of_steps: in TRAIN the global step to end at, else the number of steps. The end of the data also ends
        a run.
      checkpoint_path: path or url of a directory or checkpoint to start from, unless `log_dir` has a checkpoint.
      log_every_n_steps: steps between log lines; 0 or None for none.
      output_every_n_steps: number of steps whose outputs go into one call of `output_fn`; in PREDICT 0 means 1.
      save_summary_steps: steps between summaries; 0 or None for none.
      save_model_secs: seconds between checkpoints, 600 by default; None saves only at the start and the end.
      export_model: `ExportKeys.TF_SERVING` exports a SavedModel at the end.
      fetch_strategy_fn: not supported; an error if given.
      save_model_steps: steps between checkpoints, if `save_model_secs` is not given.

    Returns:
      A `RunResult`: the last global step, log_info, samples, and the paths of checkpoint and exported model.

    Example:
      >>> def input_fn(mode):
      ...     return tf.random_uniform([4])
      >>> def model_fn(inputs, mode):
      ...     w = tf.get_variable('w', shape=[], initializer=tf.zeros_initializer())
      ...     loss = tf.reduce_mean(tf.square(inputs[0] * w - 2 * inputs[0]))
      ...     return ModelSpec(loss=loss, log_info={'w': w})
      >>> from moxing.tensorflow.executor.specs import ModelSpec
      >>> result = run(input_fn=input_fn, model_fn=model_fn, run_mode=ModeKeys.TRAIN, batch_size=8,
      ...              optimizer_fn=lambda: tf.train.GradientDescentOptimizer(0.5), max_number_of_steps=100)
      >>> result.global_step, round(result.log_info['w'], 1)
      (100, 2.0)
    """
    arguments = dict(locals())
    FLAGS.check()
    config = check_arguments(arguments, summaries=FLAGS.get("summary_verbosity") >= 1)
    job = join_job(config.mode)
    if job is None:
        tf.logging.info("%s does not run %s; returning.", current_role().name, config.mode.value)
        return RunResult(global_step=0)
    if not job.role.is_chief:
        # Only the chief reads and writes files.
        config = replace(config, log_dir=None, checkpoint_path=None, export=False)
    with open_stage(config) as stage:
        run = Run(stage, job)
        with run.build():
            with run.open():
                run.loop()
            return run.finish()


class Run:
    """One call of `mox.run`: `build` the graph, `open` the session, `loop` over the steps, `finish`.

    Args:
      stage: the checked arguments, with local paths.
      job: the processes that take part.
    """

    def __init__(self, stage: Stage, job: Job) -> None:
        self._stage, self._config, self._job = stage, stage.config, job
        self._training = self._config.mode is ModeKeys.TRAIN
        self._checkpoint = stage.checkpoint
        resumed = self._checkpoint if self._checkpoint is not None and self._checkpoint.resume else None
        self._position = resumed.position if self._training and resumed else START
        # Reuse the shuffle seed of the resumed run.
        seed = resumed.position.seed if resumed is not None else None
        self._seed = random.SystemRandom().randrange(1, 2**31) if seed is None else seed
        if job.is_cluster:
            self._seed, self._position = job.broadcast_start(self._seed, self._position)
        self._batch: Sequence[Any] | None = None
        self._result: RunResult | None = None

    @contextmanager
    def build(self) -> Iterator[None]:
        """Builds graph, strategy and hooks. The graph is the default inside; on leaving, hooks get `run_ended`."""
        config, job = self._config, self._job
        elastic = job.is_cluster and self._training and is_elastic(config.optimizer_fns, not FLAGS.get("sync_replicas"))
        strategy = choose_strategy(self._training, job.role, job.run_number, job.connect_ring, elastic)
        with (
            run_graph(tf.Graph(), keep_seed=True),
            watch_signals() as self._stop,
            open_bad_sample_log(config.log_dir) as self._bad_samples,
            open_class_names() as self._classes,
            strategy.scope(),
        ):
            self._step = build_step(config, strategy, self._position, self._seed)
            self._evaluation = build_evaluation(config, self._step, self._seed) if config.inter_mode else None
            if config.export:
                check_version(str(config.log_dir), self._step.model.export_spec)
            if self._checkpoint is not None and self._classes.names is not None:
                check_labels(config, self._checkpoint, self._classes.names)
            with reporting_end(self._step.model.run_hooks, self._stop, lambda: self._result), self._stage.completed():
                self._restore = make_restore(self._checkpoint, self._training) if self._checkpoint else None
                self._hooks = hooks_of_run(config, self._step)
                self._hooks.begin()
                if self._evaluation is not None:
                    self._evaluation.hooks.begin()
                self._stepper = make_stepper(self._step, self._hooks.want_every_step)
                yield

    @contextmanager
    def open(self) -> Iterator[None]:
        """Opens the session, restores the variables, makes the actions and writes the first checkpoint."""
        config, step, job = self._config, self._step, self._job
        self._keeper = Keeper(config.log_dir, self._seed) if self._training and config.log_dir else None
        if self._keeper is not None and self._checkpoint is not None and self._checkpoint.resume:
            self._keeper.resume_from(self._checkpoint.prefix)
        initializers = [*step.inputs.initializers, *step.ledger.initializers]
        with open_session(self._restore, initializers, self._hooks, step.strategy, job) as session:
            if self._keeper is not None and self._classes.names is not None:
                write_labels(labels_path(str(config.log_dir)), self._classes.names)
            self._context = RunContext(
                config=config,
                job=job,
                step=step,
                session=session,
                hooks=self._hooks,
                stop=self._stop,
                keeper=self._keeper,
                events=EventFile(config.log_dir) if self._training and config.log_dir else None,
                start=self._stepper.current(session),
                position=self._position,
            )
            self._actions = run_actions(self._context, self._evaluation)
            self._announce()
            many = self._stepper.many
            if step.checks.next_steps is not None and job.any_worker("single_steps", not many) and many:
                # One worker has a hook that looks at every step, and all must do the same number of steps per call.
                # They agree inside the session, where a dead worker is noticed and named.
                self._stepper = make_stepper(step, every_step=True)
            yield

    def loop(self) -> None:
        """Runs all steps."""
        config, context = self._config, self._context
        # In a pipe there are only the log lines.
        with progress_bar(context) if has_terminal() else nullcontext() as bar:
            self._progress = Runner(context, self._stepper, self._actions, self._bad_samples).run(bar)
        if config.export and self._stop.number is None:
            self._batch = self._probe(context.session)

    def finish(self) -> RunResult:
        """Exports the model and returns the result. After a signal, leaves the process instead."""
        if report := self._bad_samples.report():
            tf.logging.warning("%s", report)
        if self._stop.number is not None:
            self._exit_after_signal()
        config, progress = self._config, self._progress
        prefix = self._checkpoint.prefix if self._checkpoint is not None else None
        if self._keeper is not None:
            prefix = self._keeper.last
        exported = None
        if config.export and prefix is not None:
            labels = self._classes.names or saved_labels(os.path.dirname(prefix))
            exported = export_model(config, self._step.inputs, find_checkpoint(prefix), self._batch, labels)
        self._result = self._stage.result(
            RunResult(
                global_step=progress.global_step,
                log_info=progress.ledger.means if config.mode is ModeKeys.EVAL else progress.ledger.last,
                checkpoint_path=prefix,
                export_path=exported,
                samples=progress.ledger.samples,
                bad_samples=self._bad_samples.samples,
            )
        )
        return self._result

    def _announce(self) -> None:
        config, checkpoint, start = self._config, self._checkpoint, self._context.start
        tf.logging.info("Running will end at step: %d", config.max_steps)
        if not self._training or checkpoint is None:
            return
        if start.global_step >= config.max_steps:
            others = (
                f"another log_dir than {config.log_dir}, or --restart to train from the start"
                if checkpoint.resume
                else "or --checkpoint_exclude_patterns=global_step to count from 0"
            )
            tf.logging.warning(
                "The checkpoint %s has reached step %d already and max_number_of_steps is %d: nothing is left to "
                "train. Give a larger max_number_of_steps, %s.",
                checkpoint.prefix,
                start.global_step,
                config.max_steps,
                others,
            )
        elif checkpoint.resume and (changed := self._step.inputs.changed_sizes(checkpoint.position.sizes)):
            tf.logging.warning(
                "The data has %d samples, and had %d when %s was written: after resuming, samples may be read twice or "
                "not at all in this epoch. Give another log_dir to train on other data.",
                changed[1],
                changed[0],
                checkpoint.prefix,
            )
        elif checkpoint.resume and not self._step.inputs.elements_per_step:
            tf.logging.info(
                "Cannot resume the input position (input_fn is not a tf.data.Dataset); reading from the start."
            )
        elif checkpoint.resume and start.global_step and checkpoint.position == Position(seed=checkpoint.position.seed):
            tf.logging.info("The last run read the data to its end; reading from the start.")

    def _probe(self, session: tf.Session) -> Sequence[Any] | None:
        """One batch from the start of the data, to compare the exported model on."""
        probe = self._step.inputs.probe
        if probe is None:
            return None
        try:
            session.run(probe.initializer)
            return session.run(probe.tensors)
        except tf.errors.OpError as error:
            tf.logging.info("No batch to compare the exported model on: %s", error.message.splitlines()[0])
            return None

    def _exit_after_signal(self) -> NoReturn:
        if self._keeper is not None:
            outcome = f"saved {self._keeper.last}. Run the same command again to resume from it."
        elif not self._training:
            outcome = f"{self._config.mode.value} saves nothing. Run the same command again."
        elif self._job.role.is_chief:
            outcome = "nothing was saved, there is no log_dir."
        else:
            outcome = "the chief saves."
        tf.logging.info("Stopped by signal %d: %s", self._stop.number, outcome)
        raise SystemExit(self._stop.exit_code)


def run_actions(run: RunContext, evaluation: Evaluation | None) -> list[Action]:
    """Makes the actions of a run. Writes the checkpoint at the start of a training.

    Args:
      run: the open run.
      evaluation: the evaluation inside training, if any.
    """
    actions: list[Action] = [LogAction(run.config, run.step.strategy.num_towers)]
    served = [hook for hook in run.step.model.run_hooks if run.training or hook.in_every_mode]
    actions += [action for hook in served if (action := hook.action(run)) is not None]
    if not run.training:
        return actions
    actions.append(RateAction())
    if run.step.summary is not None and run.events is not None:
        actions.append(SummaryAction(run.config.summary_every, run.events))
    saves: list[Action] = []
    if run.keeper is not None:
        save = SaveAction(run, run.keeper, actions)
        save.save(run.start.global_step, run.start)
        saves = [save]
    if evaluation is not None:
        actions += evaluation_actions(run, evaluation, [*actions, *saves])
    # Save after the evaluations: the checkpoint holds what their hooks have decided.
    return [*actions, *saves]

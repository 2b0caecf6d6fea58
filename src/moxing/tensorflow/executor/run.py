"""`mox.run`: the whole of a run, from the arguments to the result."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.cluster import current_role
from moxing.tensorflow.datasets.journal import Journal, open_journal
from moxing.tensorflow.datasets.raw.labels import write_labels
from moxing.tensorflow.executor import checkpoint
from moxing.tensorflow.executor.checkpoint import START, Position
from moxing.tensorflow.executor.config import DEFAULT, RunConfig, check_arguments
from moxing.tensorflow.executor.evaluations import evaluations, resume_evaluations
from moxing.tensorflow.executor.export import check_version, export_model
from moxing.tensorflow.executor.graph import Step, build_step
from moxing.tensorflow.executor.hooks.action import Action
from moxing.tensorflow.executor.hooks.events import EventFile
from moxing.tensorflow.executor.hooks.log import LogAction, RateAction
from moxing.tensorflow.executor.hooks.outputs import OutputHook
from moxing.tensorflow.executor.hooks.run_hook import RunParts
from moxing.tensorflow.executor.hooks.run_hooks import ending, hook_actions, remember
from moxing.tensorflow.executor.hooks.save import SaveAction
from moxing.tensorflow.executor.hooks.summaries import SummaryAction
from moxing.tensorflow.executor.hooks.user_hooks import UserHooks, hooks_of_towers
from moxing.tensorflow.executor.inter import Inter, build_inters, without_inter
from moxing.tensorflow.executor.job import Job, join_job
from moxing.tensorflow.executor.labels import check_labels, labels_path, saved_labels
from moxing.tensorflow.executor.learning_rates import ShownRates
from moxing.tensorflow.executor.loop import Progress, make_stepper
from moxing.tensorflow.executor.progress import progress_bar
from moxing.tensorflow.executor.restore import make_restore
from moxing.tensorflow.executor.runner import Runner
from moxing.tensorflow.executor.session import open_session
from moxing.tensorflow.executor.signals import StopSignal, watch_signals
from moxing.tensorflow.executor.specs import ModeKeys, RunResult
from moxing.tensorflow.executor.stage import Stage, open_stage
from moxing.tensorflow.optimizer.easgd import is_elastic
from moxing.tensorflow.parallel import choose_strategy
from moxing.tf1.switches import outer_seed, run_graph


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
      output_fn: `(outputs)`; is given a list of dicts of arrays.
      model_fn: `(inputs, mode, **kwargs)`; returns a `ModelSpec`.
      optimizer_fn: `()`; returns an optimizer. For several losses a list of such functions. TRAIN only.
      run_mode: `ModeKeys.TRAIN`, `EVAL` or `PREDICT`.
      inter_mode: a second mode, `ModeKeys.EVAL` for instance, that hooks run in between; TRAIN only.
      batch_size: samples per batch; None: `input_fn` returns batches already.
      auto_batch: False: `input_fn` returns batches, and `batch_size` only serves the printed throughput.
      log_dir: where checkpoints, summaries and exported models go, a path or url; None writes nothing.
      max_number_of_steps: in TRAIN the global step to end at, else the number of steps. The end of the data ends a run
        as well.
      checkpoint_path: directory or prefix of a checkpoint to begin with, a path or url, unless `log_dir` holds one.
      log_every_n_steps: period of the log lines; 0 or None for none.
      output_every_n_steps: how many steps' outputs go into one call of `output_fn`; in PREDICT 0 means 1.
      save_summary_steps: period of the summaries; 0 or None for none.
      save_model_secs: seconds between checkpoints, 600 by default; None: only at the start and the end.
      export_model: `ExportKeys.TF_SERVING` exports a SavedModel at the end.
      fetch_strategy_fn: never documented; refused.
      save_model_steps: steps between checkpoints, used where `save_model_secs` is not given.

    Returns:
      A `RunResult`: the last global step, log_info, and the paths of what was written.

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
    FLAGS.check()
    config = check_arguments(
        input_fn, output_fn, model_fn, optimizer_fn, run_mode, inter_mode, batch_size, auto_batch, log_dir,
        max_number_of_steps, checkpoint_path, log_every_n_steps, output_every_n_steps, save_summary_steps,
        save_model_secs, export_model, fetch_strategy_fn, save_model_steps,
    )  # fmt: skip
    job = join_job(config.mode)
    if job is None:
        tf.logging.info("%s: this process has no part in mode %s.", current_role().name, config.mode.value)
        return RunResult(global_step=0)
    if not job.role.is_chief:
        config = replace(config, log_dir=None, checkpoint_path=None, export=False)
    with open_stage(config) as stage:
        return _run_in(stage, job)


def _run_in(stage: Stage, job: Job) -> RunResult:
    config = stage.config
    training = config.mode is ModeKeys.TRAIN
    source = stage.choose_source() if job.role.is_chief else None
    position = source.position if training and source and source.resume else START
    seed, position = job.agreed(_data_seed(source), position)
    given = outer_seed()
    elastic = training and job.is_cluster and is_elastic(config.optimizer_fns, not FLAGS.get("sync_replicas"))
    strategy = choose_strategy(training, job.role, job.number, job.ring, elastic)
    with run_graph(tf.Graph()), watch_signals() as stop, open_journal(config.log_dir) as journal, strategy.scope():
        tf.set_random_seed(given)
        step = build_step(config, strategy, position, seed)
        inters = build_inters(config, step, seed)
        if config.export:
            check_version(str(config.log_dir), step.model.export_spec)
        check_labels(config, source, journal.labels)
        with ending(step.model.hooks, stop) as end, stage.completed():
            end.result = stage.result(_carry_out(config, job, source, step, stop, seed, journal, position, inters))
        return end.result


def _data_seed(source: checkpoint.Source | None) -> int:
    """The seed of shuffled data: that of the run that is gone on with, else a new one."""
    if source is not None and source.resume and source.position.seed is not None:
        return source.position.seed
    return random.SystemRandom().randrange(1, 2**31)


def _carry_out(
    config: RunConfig,
    job: Job,
    source: checkpoint.Source | None,
    step: Step,
    stop: StopSignal,
    seed: int,
    journal: Journal,
    position: Position,
    inters: Sequence[Inter],
) -> RunResult:
    training = config.mode is ModeKeys.TRAIN
    restore = make_restore(source, training) if source is not None else None
    # In the other modes an evaluation inside training has nothing to do.
    kept = without_inter if inters or not training else list
    users = hooks_of_towers([kept(model.hooks) for model in step.models], step.lengths)
    hooks = UserHooks([*users, *_output_hooks(config, step)])
    hooks.begin()
    beside = UserHooks([hook for inter in inters for hook in (*inter.hooks.values(), *inter.others)], inter=True)
    beside.begin()
    if users and not tf.get_collection(tf.GraphKeys.SAVERS) and tf.global_variables():
        # Where MonitoredSession's scaffold put one: hooks that save look for it there.
        tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver())
    stepper = make_stepper(step, hooks.want_every_step)
    keeper = checkpoint.Keeper(config.log_dir, seed) if training and config.log_dir else None
    if keeper is not None and source is not None and source.resume:
        keeper.last = source.prefix
    own = [*step.inputs.initializers, *step.ledger.initializers]
    with open_session(restore, own, hooks, step.strategy, job) as session:
        start = stepper.current(session)
        if keeper is not None and journal.labels is not None:
            write_labels(labels_path(str(config.log_dir)), journal.labels)
        events = EventFile(config.log_dir) if training and config.log_dir else None
        done = start.global_step if training and (step.strategy.in_step or not job.is_cluster) else 0
        parts = RunParts(config, step, session, events, keeper, done, position.hooks)
        actions: list[Action] = [
            LogAction(config, step.strategy.towers),
            *(of_hooks := hook_actions(step.model.hooks, parts)),
            *_training_actions(config, source, step, keeper, session, start, events),
        ]
        if inters:
            # Before the checkpoints, which hold what the hooks then remember.
            place = len(actions) - (keeper is not None)
            actions[place:place] = evaluations(inters, config, step, job, keeper, actions, session, hooks, beside, stop)
            resume_evaluations(actions, position, start.global_step)
        remember(of_hooks, keeper)
        _announce(config, source, step, start)
        if step.strategy.next_steps is not None and job.any_worker("single_steps", not stepper.many) and stepper.many:
            # All workers' steps must match in every call, and a hook that looks at every step may be one worker's
            # alone. They agree in the session: only there the death of another one is named.
            stepper = make_stepper(step, every_step=True)
        fresh = step.inputs.place_after(0) == (0, [0] * len(step.inputs.sources))
        runner = Runner(config, stepper, session, hooks, actions, fresh, journal, step.strategy, job)
        rates = ShownRates(step.rates, session)
        with progress_bar(config, start.global_step if training else 0, rates) as bar:
            progress = runner.run(stop, bar)
        batch = _probe(session, step) if config.export and stop.number is None else None
    if report := journal.report():
        tf.logging.warning("%s", report)
    if stop.number is not None:
        _leave(stop, keeper, job)
    return _result(config, source, step, progress, keeper, batch, journal)


def _training_actions(
    config: RunConfig,
    source: checkpoint.Source | None,
    step: Step,
    keeper: checkpoint.Keeper | None,
    session: tf.Session,
    start: Progress,
    events: EventFile | None,
) -> Iterator[Action]:
    """What TRAIN does beside the steps; the checkpoint at the start is written here."""
    if config.mode is not ModeKeys.TRAIN:
        return
    yield RateAction()
    if step.summary is not None and events is not None:
        yield SummaryAction(config, events)
    if keeper is not None:
        resumed = start.global_step if source is not None and source.resume else None
        saves = SaveAction(config, keeper, session, step.inputs, resumed)
        saves.save(start.global_step, start)
        yield saves


def _output_hooks(config: RunConfig, step: Step) -> list[OutputHook]:
    if config.output_fn is None or not config.output_every:
        return []
    if not step.model.output_info:
        raise ValueError("mox.run(output_fn=...): model_fn returned no output_info to hand to output_fn.")
    outputs = [model.output_info for model in step.models]
    return [OutputHook(config.output_fn, outputs, config.output_every, step.inputs.present)]


def _announce(config: RunConfig, source: checkpoint.Source | None, step: Step, start: Progress) -> None:
    tf.logging.info("Running will end at step: %d", config.max_steps)
    if config.mode is not ModeKeys.TRAIN or source is None:
        return
    if start.global_step >= config.max_steps:
        others = (
            f"another log_dir than {config.log_dir}, or --restart to train from the start"
            if source.resume
            else "or --checkpoint_exclude_patterns=global_step to count from 0"
        )
        tf.logging.warning(
            "The checkpoint %s has reached step %d already and max_number_of_steps is %d: nothing is left to train. "
            "Give a larger max_number_of_steps, %s.",
            source.prefix,
            start.global_step,
            config.max_steps,
            others,
        )
    elif source.resume and start.global_step and source.position == Position(seed=source.position.seed):
        tf.logging.info("The last run went through the data to its end: this one begins the data anew.")
    elif source.resume and not step.inputs.elements_per_step:
        tf.logging.info("The input is not a tf.data.Dataset: its place is not known, and the data starts over.")


def _probe(session: tf.Session, step: Step) -> Sequence[Any] | None:
    """One batch from the start of the data, to compare the exported model on."""
    if step.inputs.probe is None:
        return None
    try:
        session.run(step.inputs.probe.initializer)
        return session.run(step.inputs.probe.tensors)
    except tf.errors.OpError as error:
        tf.logging.info("No batch to compare the exported model on: %s", error.message.splitlines()[0])
        return None


def _leave(stop: StopSignal, keeper: checkpoint.Keeper | None, job: Job) -> None:
    if keeper is None and not job.role.is_chief:
        outcome = "the chief saves."
    elif keeper is None:
        outcome = "nothing was saved, there is no log_dir."
    else:
        outcome = f"saved {keeper.last}. The same command goes on from there."
    tf.logging.info("Stopped by signal %d: %s", stop.number, outcome)
    raise SystemExit(stop.exit_code)


def _result(
    config: RunConfig,
    source: checkpoint.Source | None,
    step: Step,
    progress: Progress,
    keeper: checkpoint.Keeper | None,
    batch: Sequence[Any] | None,
    journal: Journal,
) -> RunResult:
    prefix = keeper.last if keeper is not None else source.prefix if source is not None else None
    exported = None
    if config.export and prefix is not None:
        labels = journal.labels or saved_labels(os.path.dirname(prefix))
        exported = export_model(config, step.inputs, checkpoint.named(prefix), batch, labels)
    averaged = config.mode is ModeKeys.EVAL
    return RunResult(
        global_step=progress.global_step,
        log_info=progress.ledger.means if averaged else progress.ledger.last,
        checkpoint_path=prefix,
        export_path=exported,
        samples=progress.ledger.samples,
        bad_samples=journal.bad,
    )

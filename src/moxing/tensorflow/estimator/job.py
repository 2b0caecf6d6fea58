"""The job of an Estimator: TF_CONFIG, which Estimators read, and the other processes of the job."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.cluster import RoleError, current_role
from moxing.tensorflow.cluster.messages import Messages
from moxing.tensorflow.cluster.ports import listeners
from moxing.tensorflow.cluster.roles import CHIEF, Role, split_address
from moxing.tensorflow.cluster.server import process_server
from moxing.tensorflow.cluster.waiting import PeerLostError
from moxing.tensorflow.estimator.evaluator import ChiefWatch
from moxing.tensorflow.estimator.step_budget import StepBudget
from moxing.tensorflow.executor.job import Job
from moxing.tensorflow.executor.loop.signals import StopSignal
from moxing.tf1.estimator import known_hooks

#: Seconds between two looks at whether another worker was asked to stop.
_POLL_SECONDS = 0.2


def set_tf_config() -> None:
    """Sets TF_CONFIG in a job that was started with flags, such as one of `moxing run --workers 2 --ps 1`."""
    if not os.environ.get("TF_CONFIG", "").strip():
        os.environ.pop("TF_CONFIG", None)  # an empty one is no JSON for an Estimator
    if FLAGS.get("job_name") in ("chief", "master"):
        return  # a flag of the script itself, which writes TF_CONFIG
    role = current_role()
    if role.ps and "TF_CONFIG" not in os.environ:
        os.environ["TF_CONFIG"] = tf_config(role)


def tf_config(role: Role) -> str:
    """The text of TF_CONFIG for a role. Worker 0 is the chief.

    Example:
      >>> print(tf_config(Role('worker', 1, ('a:1', 'b:1'), ('c:1',))))
      {"cluster": {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}, "task": {"type": "worker", "index": 0}}
    """
    own = Role(role.job, role.index, role.workers, role.ps, chief_job="chief")
    job, index = own.task(role.name)
    return json.dumps({"cluster": own.cluster, "task": {"type": job, "index": index}})


def role_of(config: Any) -> Role:
    """The role that a `RunConfig` describes; that of a process that runs alone for an evaluator.

    A script may have written TF_CONFIG itself, so the flags do not decide.
    """
    cluster = config.cluster_spec.as_dict() if config.cluster_spec else {}
    chief_job = "master" if "master" in cluster else "chief"
    workers = [*cluster.get(chief_job, []), *cluster.get("worker", [])]
    if not workers:
        return Role()
    index = config.task_id + (len(cluster.get(chief_job, [])) if config.task_type == "worker" else 0)
    job = "ps" if config.task_type == "ps" else "worker"
    role = Role(job, index, tuple(workers), tuple(cluster.get("ps", [])), chief_job=chief_job)
    return replace(role, origin=_origin(role))


def _origin(role: Role) -> str:
    """The flags, if they define the same role: messages then use the names that the processes have there."""
    try:
        flags = current_role()
    except RoleError:  # flags of the script itself
        return "TF_CONFIG"
    same = (flags.job, flags.index, flags.workers, flags.ps) == (role.job, role.index, role.workers, role.ps)
    return flags.origin if same else "TF_CONFIG"


class EstimatorJob:
    """The part of this process in the job of an Estimator. For a process that runs alone, all methods do nothing."""

    def __init__(self) -> None:
        self._job: Job | None = None
        self._budget = StepBudget()
        self._stop = StopSignal()
        self._session: tf.Session | None = None
        self._trainings = 0  # all workers run the same script: a number means the same training on all
        self._chief: ChiefWatch | None = None

    def join(self, config: Any) -> None:
        """Starts the server of this process and waits for all others; only the first call does.

        Args:
          config: the `RunConfig`.

        Raises:
          RoleError: several workers without a ps.
          ValueError: a protocol that TensorFlow does not have.
        """
        role = role_of(config)
        _check_has_ps(role)
        if self._job is not None or not role.is_cluster:
            return
        if config.protocol not in (None, "grpc"):
            raise ValueError(
                f"RunConfig(protocol={config.protocol!r}): this TensorFlow has no such protocol; use grpc, or leave it "
                "out."
            )
        port = split_address(str(role.address))[1]
        if any(listener.pid == os.getpid() for listener in listeners(port)):
            tf.logging.warning(
                "The script has started the TensorFlow server of %s itself: the other processes of the job are not "
                "watched. tf.estimator.train_and_evaluate starts the server.",
                role.describe(role.name),
            )
            return
        options = config.session_config.gpu_options if config.session_config is not None else None
        server = process_server(role, tf.ConfigProto(gpu_options=options))
        server.wait_for_peers()
        self._job = Job(role, server)
        if role.is_chief and role.ps:
            StepBudget.open(server.target)

    def serve(self, config: Any) -> NoReturn:
        """Is a ps until all workers have ended, and then ends the process."""
        self.join(config)
        if self._job is None or self._job.server is None:
            raise ValueError("The script has started the server of this ps itself; it must call server.join().")
        self._job.server.serve()
        raise SystemExit(0)

    def count_training(self, config: Any) -> None:
        """`Estimator.train` was called, even if it will find nothing to do.

        Args:
          config: the `RunConfig`.

        Raises:
          RoleError: several workers without a ps.
        """
        _check_has_ps(role_of(config))
        self._trainings += 1

    def evaluator(self) -> ChiefWatch:
        """Starts to watch the chief, whose end is that of the training."""
        self._chief = ChiefWatch(os.environ.get("TF_CONFIG", ""))
        return self._chief

    def sleep(self, seconds: float) -> None:
        """Waits; in an evaluator only as long as the chief trains."""
        if self._chief is not None:
            self._chief.sleep(seconds)
        else:
            time.sleep(seconds)

    @contextmanager
    def training(self, stop: StopSignal) -> Iterator[None]:
        """In this context, the death of another process ends the training with an error that names it.

        Args:
          stop: a signal to this process, which stops the others too; or one to another, which stops this one.
        """
        self._stop, job = stop, self._job
        if job is None or job.server is None:
            yield
            return
        job.run_number = self._trainings
        job.server.begin_run()
        with job.watch_peers(self):
            yield

    def close(self) -> None:
        """Closes the open session of the training."""
        if self._session is not None:
            self._session.close()

    def budget(self, hooks: Sequence[tf.train.SessionRunHook]) -> StepBudget | None:
        """Shares the steps of a training; None if this process trains alone or its steps wait for those of others."""
        if self._job is None or not self._job.role.ps or any(map(known_hooks.waits_for_workers, hooks)):
            return None
        self._budget.workers = self._job.role.num_workers
        return self._budget

    def wait_for_chief(self) -> None:
        """Returns when the chief has initialised the variables. TensorFlow itself would look for it every 30 s.

        Raises:
          PeerLostError: the chief has ended without training.
        """
        if self._job is None or self._job.role.is_chief:
            return
        messages, key = _messages(self._job), _key("ready", CHIEF, self._job)
        messages.wait(lambda: bool(messages.received(key)) or messages.has_left(CHIEF))
        if not messages.received(key):
            raise PeerLostError(
                f"{CHIEF}, the chief, has ended without a training, and {self._job.role.name} has to train. Is there a "
                "checkpoint of the last step that only the chief sees? All processes need the same model_dir."
            )

    def hooks(self) -> list[tf.train.SessionRunHook]:
        """Hooks of every worker. They come after the hook that runs the steps."""
        return [] if self._job is None else [_WorkerHook(self._job, self)]

    def chief_hooks(self) -> list[tf.train.SessionRunHook]:
        """Hooks of the chief. They come before the hook that saves the last checkpoint."""
        return [] if self._job is None or not self._job.role.is_chief else [_LastStepsHook(self._job)]

    def opened(self, session: tf.Session) -> None:
        """The training has a new session."""
        self._session = session

    def poll_stop(self, job: Job) -> None:
        """Passes a signal on to the other workers, or takes one that another has passed on."""
        messages, key = _messages(job), f"estimator_{job.run_number}/stop"
        passed_on = messages.received(key)
        if passed_on is not None:
            self._stop.number = self._stop.number or signal.Signals(passed_on)
        elif self._stop.number is not None:
            messages.store.write(key, str(int(self._stop.number)))
            messages.broadcast(key, int(self._stop.number))


class _WorkerHook(tf.train.SessionRunHook):
    """Tells the chief when this worker trains, and stops it when another one got a signal."""

    def __init__(self, job: Job, own: EstimatorJob) -> None:
        self._job, self._own = job, own
        self._next_poll = 0.0

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        self._own.opened(session)
        if self._job.role.is_chief:
            _messages(self._job).broadcast(_key("ready", CHIEF, self._job), True)
        else:
            self._tell("begun")

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if time.monotonic() > self._next_poll:
            self._own.poll_stop(self._job)
            self._next_poll = time.monotonic() + _POLL_SECONDS

    def end(self, session: tf.Session) -> None:
        if not self._job.role.is_chief:
            self._tell("done")

    def _tell(self, what: str) -> None:
        _messages(self._job).send(CHIEF, _key(what, self._job.role.name, self._job), True)


class _LastStepsHook(tf.train.SessionRunHook):
    """Lets the chief wait until no worker does steps any more: its last checkpoint has the steps of all."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def end(self, session: tf.Session) -> None:
        messages = _messages(self._job)
        messages.wait(lambda: not any(map(self._does_steps, messages.other_workers)))

    def _does_steps(self, worker: str) -> bool:
        messages = _messages(self._job)
        if not messages.received(_key("begun", worker, self._job)):
            return False  # not yet: as in TensorFlow 1, the chief does not wait for it
        return not messages.received(_key("done", worker, self._job)) and not messages.has_left(worker)


def _messages(job: Job) -> Messages:
    if job.server is None:
        raise ValueError("a process that runs alone has no messages")
    return job.server.messages


def _key(what: str, worker: str, job: Job) -> str:
    return f"estimator_{job.run_number}/{what}/{worker}"


def _check_has_ps(role: Role) -> None:
    """Refuses a job without parameter servers, in which every worker would train a model of its own."""
    role = role if role.is_cluster else current_role()
    if role.num_workers > 1 and not role.ps:
        raise RoleError(  # a wrong command line: the launcher must not restart the job
            f"Estimator.train in a job of {role.num_workers} workers without parameter servers: an Estimator keeps "
            "its variables on parameter servers. Start it with `moxing run --workers 2 --ps 1`, or give --ps_hosts."
        )

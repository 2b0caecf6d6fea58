"""`moxing run --workers 2 --ps 1 script.py --its --flags`: runs a script as a whole cluster on this machine."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moxing.cli.cluster import isolation
from moxing.cli.cluster.launcher import Supervisor, free_ports
from moxing.framework.util.interfaces import open_interfaces

#: Options of `moxing run` that take a value.
WITH_VALUE = ("--workers", "--ps", "--max_restarts", "--cluster_logs")
#: All its options for a cluster.
OPTIONS = (*WITH_VALUE, "--evaluator", "--isolate")
_DEFAULT_LOGS = "moxing_cluster_logs"
_DEFAULT_RESTARTS = 3
_EVALUATOR_ADVICE = (
    "it is a process of a job of tf.estimator.train_and_evaluate; give --workers and --ps too, "
    "such as --workers 2 --ps 1 --evaluator"
)
#: Flags that define the role of a process; the launcher sets them.
_ROLE_FLAGS = ("ps_hosts", "worker_hosts", "job_name", "task_index", "controller_host")


@dataclass(frozen=True)
class Plan:
    """A job: the number of processes of each kind, and the arguments of `moxing run` for each.

    Attributes:
      workers: number of workers.
      ps: number of parameter servers.
      start: options of `moxing run` and the script, or `-m` and the module.
      flags: flags of the script.
      evaluator: whether one more process evaluates the checkpoints.
    """

    workers: int
    ps: int
    start: tuple[str, ...]
    flags: tuple[str, ...] = ()
    evaluator: bool = False

    @property
    def description(self) -> str:
        """The processes, for messages.

        Example:
          >>> Plan(2, 1, ('train.py',), evaluator=True).description
          '2 workers, 1 ps and 1 evaluator'
        """
        parts = [_plural(self.workers, "worker")]
        parts += [f"{self.ps} ps"] if self.ps else []
        parts += ["1 evaluator"] if self.evaluator else []
        return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]

    def commands(self) -> Mapping[str, list[str]]:
        """Returns the command line of each process by name, with free ports.

        Example:
          >>> commands = Plan(2, 1, ('train.py',), ('--lr=0.1',)).commands()
          >>> list(commands)
          ['ps 0', 'worker 0', 'worker 1']
          >>> commands['worker 1'][1:6], commands['worker 1'][-2:]
          (['-m', 'moxing', 'run', 'train.py', '--lr=0.1'], ['--job_name=worker', '--task_index=1'])
        """
        hosts = [f"127.0.0.1:{port}" for port in free_ports(self.ps + self.workers)]
        jobs = {"ps": hosts[: self.ps], "worker": hosts[self.ps :]}
        cluster = [f"--{job}_hosts={','.join(addresses)}" for job, addresses in jobs.items() if addresses]
        if self.workers > 1 and not self.ps and not _find_flag(self.flags, ("variable_update",)):
            cluster.insert(0, "--variable_update=collective")
        # After `--` nothing is a flag.
        end = self.flags.index("--") if "--" in self.flags else len(self.flags)
        before, after = self.flags[:end], self.flags[end:]
        start = [sys.executable, "-m", "moxing", "run", *self.start, *before, *cluster]
        counts = {job: len(addresses) for job, addresses in jobs.items()} | {"evaluator": int(self.evaluator)}
        return {
            f"{job} {index}": [*start, f"--job_name={job}", f"--task_index={index}", *after]
            for job, count in counts.items()
            for index in range(count)
        }


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a cluster to the parser of `moxing run`."""
    group = parser.add_argument_group("a cluster on this machine")
    group.add_argument("--workers", type=int, metavar="N", help="run the script as a job of N worker processes")
    group.add_argument("--ps", type=int, metavar="N", help="and N parameter servers; without them: all-reduce")
    group.add_argument(
        "--evaluator",
        action="store_true",
        help="and a process that evaluates every checkpoint, for tf.estimator.train_and_evaluate; needs --ps",
    )
    group.add_argument(
        "--max_restarts",
        type=int,
        metavar="N",
        help=f"how often the job is restarted after one of its processes has died ({_DEFAULT_RESTARTS})",
    )
    group.add_argument(
        "--cluster_logs",
        metavar="DIR",
        help=f"directory for the output of each process ({_DEFAULT_LOGS}/DATE-TIME)",
    )
    group.add_argument(
        "--isolate",
        action="store_true",
        help="run the job in its own network namespace, which is cut off from all other networks",
    )


def wrong_options(arguments: argparse.Namespace, flags: Sequence[str]) -> str | None:
    """Returns what is wrong with the options of a cluster, or None.

    Args:
      arguments: parsed options of `add_options`.
      flags: flags of the script.

    Example:
      >>> parser = argparse.ArgumentParser()
      >>> add_options(parser)
      >>> wrong_options(parser.parse_args(['--ps', '1']), [])
      '--ps 1: give --workers too, the number of worker processes'
    """
    smallest = {"workers": 1, "ps": 0, "max_restarts": 0}
    for name, least in smallest.items():
        number = getattr(arguments, name)
        if number is not None and number < least:
            return f"--{name} {number}: expected {least} or more"
    if arguments.workers is None:
        if arguments.evaluator:
            return f"--evaluator: {_EVALUATOR_ADVICE}"
        for name in ("ps", "max_restarts", "cluster_logs", "isolate"):
            value = getattr(arguments, name)
            if value is not None and value is not False:
                option = f"--{name}" if value is True else f"--{name} {value}"
                return f"{option}: give --workers too, the number of worker processes"
        return None
    if arguments.evaluator and not arguments.ps:
        return f"--evaluator without --ps: {_EVALUATOR_ADVICE}"
    found = _find_flag(flags, _ROLE_FLAGS)
    if found:
        return f"--{found} among the script's flags: with --workers every process gets its role; leave it out"
    return None


def run(arguments: argparse.Namespace, start: Sequence[str], flags: Sequence[str]) -> int:
    """Runs the cluster and returns its exit code.

    Args:
      arguments: parsed options of `add_options`, checked by `wrong_options`.
      start: the other options of `moxing run` and the script, or `-m` and the module.
      flags: flags of the script.
    """
    plan = Plan(arguments.workers, arguments.ps or 0, tuple(start), tuple(flags), arguments.evaluator)
    if arguments.isolate:
        problem = isolation.why_not()
        if problem is not None:
            return error(f"--isolate: {problem}")
    try:
        logs = make_log_directory(arguments.cluster_logs)
    except OSError as problem:
        where = f"--cluster_logs {arguments.cluster_logs}" if arguments.cluster_logs is not None else _DEFAULT_LOGS
        return error(f"{where}: cannot write the logs there: {problem.strerror}")
    where = "on this machine, in a private network" if arguments.isolate else "on this machine"
    print(f"moxing run: {plan.description} {where}; logs: {logs}{os.sep}", file=sys.stderr, flush=True)
    if arguments.isolate:
        try:
            isolation.enter_private_network()
        except isolation.IsolationError as reason:
            return error(f"--isolate: {reason}")
    elif plan.workers + plan.ps > 1:
        _warn_about_open_ports()
    restarts = _DEFAULT_RESTARTS if arguments.max_restarts is None else arguments.max_restarts
    return Supervisor(plan.commands, logs, restarts).run()


def _warn_about_open_ports() -> None:
    """Warns once for all processes, which do not warn themselves."""
    addresses = open_interfaces()
    if addresses:
        print(
            f"moxing run: warning: the TensorFlow servers of this job listen on every interface of this machine "
            f"({', '.join(addresses)}) and execute whatever reaches their ports. Protect them with a firewall, "
            "or add --isolate.",
            file=sys.stderr,
            flush=True,
        )


def make_log_directory(wanted: str | None) -> Path:
    """Creates the directory for the logs: `wanted`, or a new one named after the time.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as parent:
      ...   make_log_directory(os.path.join(parent, 'a', 'b')).name
      'b'
    """
    if wanted is not None:
        directory = Path(wanted)
        directory.mkdir(parents=True, exist_ok=True)
        if not os.access(directory, os.W_OK | os.X_OK):
            raise PermissionError(13, os.strerror(13), wanted)
        return directory
    name = time.strftime("%Y-%m-%d-%H-%M-%S")
    number = 1
    while True:
        directory = Path(_DEFAULT_LOGS, name if number == 1 else f"{name}-{number}")
        try:
            directory.mkdir(parents=True)
            return directory
        except FileExistsError:
            if not directory.is_dir():
                raise
            number += 1


def _find_flag(flags: Sequence[str], names: Sequence[str]) -> str | None:
    """Returns the first of `names` that is among the flags, with or without a value."""
    for word in flags:
        if word == "--":
            break
        name = word.lstrip("-").partition("=")[0]
        if word.startswith("-") and name in names:
            return name
    return None


def _plural(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def error(text: str) -> int:
    """Prints an error of `moxing run` and returns its exit code.

    Example:
      >>> error('--workers 0: expected 1 or more')
      2
    """
    print(f"moxing run: error: {text}.", file=sys.stderr)
    return 2

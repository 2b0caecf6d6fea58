"""Roles from Slurm: all tasks of one `srun` are workers."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator

from moxing.tensorflow.cluster.environments.registry import register_environment
from moxing.tensorflow.cluster.roles import Role, RoleError

#: Step ids from here on are not from srun: the shell of salloc, the batch script, and so on.
_FIRST_SPECIAL_STEP = 0xFFFFFFF0
#: Every job id gets a slot of ports, below the kernel's ephemeral ports (32768 and up).
_FIRST_PORT, _SLOTS, _PORTS_A_SLOT = 12000, 1280, 16
#: Concurrent steps of one job get slots far apart from each other and from those of the next job.
_SLOTS_BETWEEN_STEPS = 641


@register_environment("slurm", priority=10, variable="SLURM_PROCID")
def detect() -> Role | None:
    """Returns the role of a task of `srun`, or None outside of `srun` and for a single task.

    A batch script sees SLURM_PROCID and SLURM_NTASKS too, but runs once: only tasks of `srun` count.

    Raises:
      RoleError: Slurm's variables contradict each other.

    Example:
      >>> detect() is None
      True
    """
    if "SLURM_PROCID" not in os.environ or not _is_step():
        return None
    tasks = _number("SLURM_STEP_NUM_TASKS") or _number("SLURM_NTASKS") or 1
    origin = next((name for name in ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST") if os.environ.get(name)), None)
    if tasks == 1 or origin is None:
        return None
    nodes = expand_hosts(os.environ[origin], origin)
    positions = _positions(nodes, tasks, origin)
    index = _number("SLURM_PROCID") or 0
    if index >= tasks:
        raise RoleError(f"SLURM_PROCID={index} with {tasks} tasks: expected 0 to {tasks - 1}.")
    _check_position(positions[index])
    port = _first_port()
    workers = tuple(f"{nodes[node]}:{port + local}" for node, local in positions)
    return Role("worker", index, workers, origin=origin)


def _is_step() -> bool:
    step = _number("SLURM_STEP_ID")
    if step is not None:
        return step < _FIRST_SPECIAL_STEP
    return "SLURM_STEP_NUM_TASKS" in os.environ or "SLURM_STEP_NODELIST" in os.environ


def _number(name: str) -> int | None:
    text = os.environ.get(name)
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise RoleError(f"{name}={text}: expected a number.")
    return int(text)


def _first_port() -> int:
    slot = (_number("SLURM_JOB_ID") or 0) + _SLOTS_BETWEEN_STEPS * (_number("SLURM_STEP_ID") or 0)
    return _FIRST_PORT + slot % _SLOTS * _PORTS_A_SLOT


def _positions(nodes: list[str], tasks: int, origin: str) -> list[tuple[int, int]]:
    """For every task the index of its node and its index on that node, in block distribution."""
    name = next((name for name in ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE") if os.environ.get(name)), None)
    if name is not None:
        counts = expand_counts(os.environ[name], name)
    elif tasks % len(nodes) == 0 and len(nodes) in (1, tasks):
        counts = [tasks // len(nodes)] * len(nodes)
    else:
        raise RoleError(
            f"SLURM_STEP_TASKS_PER_NODE is not set: {tasks} tasks on {len(nodes)} nodes need it, such as 2(x3),1."
        )
    if len(counts) != len(nodes) or sum(counts) != tasks:
        raise RoleError(
            f"{name}={os.environ.get(name or '')} says {sum(counts)} tasks on {len(counts)} nodes, "
            f"but there are {tasks} tasks, and {origin}={os.environ[origin]} has {len(nodes)} nodes."
        )
    return [(node, local) for node, count in enumerate(counts) for local in range(count)]


def _check_position(position: tuple[int, int]) -> None:
    """Raises an error if Slurm put this task elsewhere, as `srun --distribution=cyclic` does."""
    for name, expected in zip(("SLURM_NODEID", "SLURM_LOCALID"), position, strict=True):
        actual = _number(name)
        if actual is not None and actual != expected:
            raise RoleError(
                f"{name}={actual} of task {os.environ['SLURM_PROCID']}: expected {expected}, in block distribution; "
                "start the job with srun --distribution=block."
            )


def expand_counts(text: str, name: str = "SLURM_TASKS_PER_NODE") -> list[int]:
    """Expands Slurm's short form of the number of tasks on every node.

    Example:
      >>> expand_counts("2(x3),1")
      [2, 2, 2, 1]
    """
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]+)(?:\(x([0-9]+)\))?\s*", part)
        if match is None:
            raise RoleError(f"{name}={text}: expected counts such as 2(x3),1.")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def expand_hosts(text: str, name: str = "SLURM_JOB_NODELIST") -> list[str]:
    """Expands Slurm's short form of a list of hosts.

    Example:
      >>> expand_hosts("n[01-02,07],login,gpu-[1-2]-ib[0-1]")
      ['n01', 'n02', 'n07', 'login', 'gpu-1-ib0', 'gpu-1-ib1', 'gpu-2-ib0', 'gpu-2-ib1']
    """
    hosts: list[str] = []
    for item in re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+|[\[\]]", text):
        if item in "[]":
            raise RoleError(f"{name}={text}: the brackets do not match; expected a list such as n[01-04,07],gpu-1.")
        # Alternates plain text and the content of brackets; the first and the last part are plain text.
        parts = re.split(r"\[([^\[\]]*)\]", item.strip())
        choices = [list(_ranges(part, name, text)) if position % 2 else [part] for position, part in enumerate(parts)]
        hosts += ["".join(choice) for choice in itertools.product(*choices)]
    if not hosts or "" in hosts:
        raise RoleError(f"{name}={text!r}: expected a list of hosts such as n[01-04,07],gpu-1.")
    return hosts


def _ranges(ranges: str, name: str, text: str) -> Iterator[str]:
    for part in ranges.split(","):
        match = re.fullmatch(r"\s*([0-9]+)(?:-([0-9]+))?\s*", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise RoleError(f"{name}={text}: [{ranges}] is not a list of ranges; expected one such as [01-04,07].")
        width = len(match[1])
        yield from (f"{number:0{width}d}" for number in range(int(match[1]), int(match[2] or match[1]) + 1))

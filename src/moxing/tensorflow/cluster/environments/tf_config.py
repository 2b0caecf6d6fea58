"""Roles from TF_CONFIG, as Kubeflow's TFJob and `tf.distribute` write it."""

from __future__ import annotations

import json
import os
from typing import Any

from moxing.tensorflow.cluster.environments.registry import register_environment
from moxing.tensorflow.cluster.roles import Role, RoleError, check_addresses, check_index

_EXAMPLE = '{"cluster": {"chief": ["a:2222"], "worker": ["b:2222"]}, "task": {"type": "worker", "index": 0}}'
#: The jobs of TF_CONFIG; "master" is the older name of the chief.
_JOBS = ("chief", "master", "worker", "ps", "evaluator")


# Before Slurm: TF_CONFIG is written for this program, while Slurm's variables are set for any.
@register_environment("tf_config", priority=20, variable="TF_CONFIG")
def detect() -> Role | None:
    """Returns the role in TF_CONFIG, or None if it is not set. The chief becomes worker 0, worker i worker i + 1.

    Raises:
      RoleError: TF_CONFIG is not valid; the message names the field.

    Example:
      >>> os.environ["TF_CONFIG"] = _EXAMPLE
      >>> role = detect()
      >>> role.name, role.peers
      ('worker 1', {'worker 0': 'a:2222'})
      >>> del os.environ["TF_CONFIG"]
    """
    text = os.environ.get("TF_CONFIG", "").strip()
    if not text:
        return None
    cluster, task = _read(text)
    if not cluster:
        return Role(origin="TF_CONFIG")
    job, index = _read_task(task)
    if job == "evaluator":
        # An evaluator only reads checkpoints; it takes no share of the workers' data.
        if "evaluator" in cluster:
            check_index("TF_CONFIG task.index", index, "cluster.evaluator", cluster["evaluator"])
        if index:
            raise RoleError(f"TF_CONFIG task.index={index} of an evaluator: a job has one evaluator, expected 0.")
        return Role("evaluator", index, origin="TF_CONFIG")
    return _role(cluster, job, index)


def _role(cluster: dict[str, list[str]], job: str, index: int) -> Role:
    if job not in cluster:
        raise RoleError(f"TF_CONFIG task.type={job!r}: cluster has {', '.join(sorted(cluster))}.")
    check_index("TF_CONFIG task.index", index, f"cluster.{job}", cluster[job])
    chief = cluster.get("chief", cluster.get("master", []))
    workers, ps = [*chief, *cluster.get("worker", [])], cluster.get("ps", [])
    if not workers:
        raise RoleError("TF_CONFIG cluster has ps and neither chief nor worker; expected at least one of them.")
    if len(workers) > 1 or ps:
        check_addresses({f"TF_CONFIG cluster.{name}": hosts for name, hosts in cluster.items() if name != "evaluator"})
    worker_index = index + len(chief) if job == "worker" else index
    return Role("ps" if job == "ps" else "worker", worker_index, tuple(workers), tuple(ps), origin="TF_CONFIG")


def _read(text: str) -> tuple[dict[str, list[str]], Any]:
    """The cluster without empty jobs, and the task, unchecked."""
    try:
        config = json.loads(text)
    except ValueError as error:
        raise RoleError(f"TF_CONFIG={text!r:.200} is not JSON ({error}); expected something like {_EXAMPLE}.") from None
    if not isinstance(config, dict):
        raise RoleError(f"TF_CONFIG={text!r:.200}: expected an object like {_EXAMPLE}.")
    cluster = config.get("cluster") or {}
    if not isinstance(cluster, dict):
        raise RoleError(
            f"TF_CONFIG cluster={cluster!r:.200}: expected an object with a list of host:port for each job."
        )
    for job, hosts in cluster.items():
        if job not in _JOBS:
            raise RoleError(f"TF_CONFIG cluster.{job}: expected one of {', '.join(_JOBS)}.")
        if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
            raise RoleError(f"TF_CONFIG cluster.{job}={hosts!r:.200}: expected a list of all its host:port.")
    chiefs = [*cluster.get("chief", []), *cluster.get("master", [])]
    if len(chiefs) > 1:
        raise RoleError(
            f"TF_CONFIG cluster has the chiefs {','.join(chiefs)} (chief and master are one job); expected one."
        )
    return {job: hosts for job, hosts in cluster.items() if hosts}, config.get("task")


def _read_task(task: Any) -> tuple[str, int]:
    if not isinstance(task, dict) or not task:
        raise RoleError(
            f'TF_CONFIG has a cluster and task={task!r}; expected a task such as {{"type": "worker", "index": 0}}.'
        )
    job, index = task.get("type"), task.get("index", 0 if task.get("type") in ("chief", "master") else None)
    if job not in _JOBS:
        raise RoleError(f"TF_CONFIG task.type={job!r}: expected one of {', '.join(_JOBS)}.")
    if isinstance(index, str) and index.isascii() and index.isdigit():
        index = int(index)
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise RoleError(f"TF_CONFIG task.index={index!r}: expected the index of this process in its job, from 0.")
    return job, index

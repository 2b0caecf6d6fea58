"""Roles from the flags: `--job_name`, `--task_index` and the host lists."""

from __future__ import annotations

from collections.abc import Sequence

from moxing.framework.flags import FLAGS, expected_one_of
from moxing.tensorflow.cluster.environments.registry import register_environment
from moxing.tensorflow.cluster.roles import Role, RoleError, check_addresses, check_index

#: Every process of a job is one of these; an evaluator, which only reads checkpoints, may be added for an Estimator.
_JOBS = ("ps", "worker", "controller")
_ALL_JOBS = (*_JOBS, "evaluator")


@register_environment("flags", priority=1000)
def detect() -> Role | None:
    """Returns the role that the flags define, or None if they name no host.

    Raises:
      RoleError: the flags contradict each other.

    Example:
      >>> FLAGS.set("worker_hosts", "a:2222,b:2222")
      >>> FLAGS.set("job_name", "worker")
      >>> FLAGS.set("task_index", 1)
      >>> detect().name
      'worker 1'
      >>> FLAGS.reset()
    """
    job, index = FLAGS.get("job_name") or "", FLAGS.get("task_index") or 0
    workers, ps, controllers = (_hosts(name) for name in ("worker_hosts", "ps_hosts", "controller_host"))
    if job not in ("", *_ALL_JOBS):
        raise RoleError(f"--job_name={job}: {expected_one_of(job, _ALL_JOBS)}")
    if job == "ps" and not ps:
        raise RoleError("--job_name=ps without --ps_hosts: give the host:port list of all parameter servers.")
    if job == "controller" and not controllers:
        raise RoleError("--job_name=controller without --controller_host: give the controller's host:port.")
    if job == "evaluator":
        return _evaluator(index, workers, ps)
    if not workers:
        _require_no_hosts(index, ps, controllers)
        return None
    if len(workers) == 1 and not ps and not controllers:
        # Nothing connects to a worker that runs alone: its address needs no port.
        check_index("--task_index", index, "--worker_hosts", workers)
        return Role(workers=tuple(workers), origin="--worker_hosts")
    lists = {"--worker_hosts": workers, "--ps_hosts": ps, "--controller_host": controllers}
    check_addresses(lists)
    if len(controllers) > 1:
        raise RoleError(f"--controller_host={','.join(controllers)}: expected one host:port.")
    if not job:
        raise RoleError(
            f"--worker_hosts={','.join(workers)}{_shown('ps_hosts', ps)}{_shown('controller_host', controllers)} is a "
            f"cluster: give --job_name ({', '.join(_JOBS)}) and --task_index of this process."
        )
    name = "--controller_host" if job == "controller" else f"--{job}_hosts"
    check_index("--task_index", index, name, lists[name])
    return Role(job, index, tuple(workers), tuple(ps), controllers[0] if controllers else None, origin=name)


def _evaluator(index: int, workers: Sequence[str], ps: Sequence[str]) -> Role:
    if not workers or not ps:
        missing = "--worker_hosts" if not workers else "--ps_hosts"
        raise RoleError(
            f"--job_name=evaluator without {missing}: an evaluator belongs to a job of an Estimator with workers and "
            "parameter servers; give the host:port lists of both."
        )
    check_addresses({"--worker_hosts": workers, "--ps_hosts": ps})
    if index:
        raise RoleError(f"--task_index={index} with --job_name=evaluator: a job has one evaluator, expected 0.")
    return Role("evaluator", 0, tuple(workers), tuple(ps), origin="--job_name")


def _hosts(name: str) -> list[str]:
    text = (FLAGS.get(name) or "").strip().rstrip(",")
    return [host.strip() for host in text.split(",")] if text else []


def _shown(name: str, hosts: Sequence[str]) -> str:
    return f" --{name}={','.join(hosts)}" if hosts else ""


def _require_no_hosts(index: int, ps: Sequence[str], controllers: Sequence[str]) -> None:
    for name, hosts in (("ps_hosts", ps), ("controller_host", controllers)):
        if hosts:
            raise RoleError(
                f"--{name}={','.join(hosts)} without --worker_hosts: give the host:port list of all workers too."
            )
    if index:
        raise RoleError(
            f"--task_index={index} without --worker_hosts: give the list of hosts that it is an index of, "
            "or leave --task_index out for a single process."
        )

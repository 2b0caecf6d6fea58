"""The role of a process in a job: which worker or ps it is, and the addresses of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moxing.framework.flags import FlagError, expected_one_of

#: Name of the chief.
CHIEF = "worker 0"
_JOBS = ("worker", "ps", "controller", "evaluator")


class RoleError(FlagError):
    """The flags or the environment define no valid role, or contradict those of another process."""


@dataclass(frozen=True)
class Role:
    """The role of this process and the addresses of all processes. The default is a process that runs alone.

    Attributes:
      job: "worker", "ps", "controller" or "evaluator".
      index: index of this process in its job.
      workers: host:port of the workers; worker 0 is the chief.
      ps: host:port of the parameter servers.
      controller: host:port of the controller of a job without ps.
      origin: where the role comes from, for messages: "--worker_hosts" or "TF_CONFIG", for example.
      chief_job: the job of the chief in TensorFlow's cluster. In the job of an Estimator it is "chief" or "master".

    Example:
      >>> role = Role("worker", 1, workers=("a:2222", "b:2222"), ps=("c:2222",))
      >>> role.name, role.address, role.is_chief, role.num_workers
      ('worker 1', 'b:2222', False, 2)
      >>> role.peers
      {'worker 0': 'a:2222', 'ps 0': 'c:2222'}
      >>> Role().is_cluster
      False
    """

    job: str = "worker"
    index: int = 0
    workers: tuple[str, ...] = ()
    ps: tuple[str, ...] = ()
    controller: str | None = None
    origin: str = ""
    chief_job: str = "worker"

    @property
    def is_cluster(self) -> bool:
        """Whether the job has other processes. An evaluator is none of a job: it only reads checkpoints."""
        return self.job != "evaluator" and (len(self.workers) > 1 or bool(self.ps) or self.controller is not None)

    @property
    def is_chief(self) -> bool:
        """Whether this process saves checkpoints and writes summaries."""
        return self.job == "worker" and self.index == 0

    @property
    def num_workers(self) -> int:
        """Number of workers that share the data."""
        return 1 if self.job == "evaluator" else max(1, len(self.workers))

    @property
    def name(self) -> str:
        """The name of this process in messages."""
        return self.job if self.job == "controller" else f"{self.job} {self.index}"

    @property
    def address(self) -> str | None:
        """host:port of this process, or None."""
        return self._members.get(self.name)

    @property
    def peers(self) -> dict[str, str]:
        """The addresses of all other processes, by name. An evaluator has no peers and is no peer of others."""
        if self.job == "evaluator":
            return {}
        return {name: address for name, address in self._members.items() if name != self.name}

    @property
    def spec(self) -> dict[str, list[str]]:
        """The jobs and their addresses."""
        controller = [] if self.controller is None else [self.controller]
        jobs = {"worker": list(self.workers), "ps": list(self.ps), "controller": controller}
        return {job: addresses for job, addresses in jobs.items() if addresses}

    @property
    def cluster(self) -> dict[str, list[str]]:
        """The jobs and their addresses as TensorFlow knows them, for `tf.train.ClusterSpec`.

        Example:
          >>> Role(workers=("a:1", "b:1"), ps=("c:1",), chief_job="chief").cluster
          {'chief': ['a:1'], 'worker': ['b:1'], 'ps': ['c:1']}
        """
        if self.chief_job == "worker":
            return self.spec
        jobs = {self.chief_job: self.workers[:1], "worker": self.workers[1:], "ps": self.ps}
        return {job: list(addresses) for job, addresses in jobs.items() if addresses}

    def task(self, name: str) -> tuple[str, int]:
        """The job and the index of a process in TensorFlow's cluster.

        Example:
          >>> Role(workers=("a:1", "b:1"), chief_job="chief").task("worker 1")
          ('worker', 0)
        """
        job, _, index = name.partition(" ")
        if job != "worker" or self.chief_job == "worker":
            return job, int(index or 0)
        return (self.chief_job, 0) if name == CHIEF else ("worker", int(index) - 1)

    def device(self, name: str) -> str:
        """The name of a process among TensorFlow's devices.

        Example:
          >>> Role().device("ps 1")
          '/job:ps/task:1'
        """
        job, index = self.task(name)
        return f"/job:{job}/task:{index}"

    def describe(self, name: str) -> str:
        """The name of a process for messages, with the name that TF_CONFIG gives it if that is another.

        Example:
          >>> Role(workers=("a:1", "b:1"), origin="TF_CONFIG", chief_job="chief").describe("worker 1")
          'worker 1 (worker 0 in TF_CONFIG)'
        """
        if self.origin != "TF_CONFIG" or self.chief_job == "worker":
            return name
        job, index = self.task(name)
        own = job if job == self.chief_job else f"{job} {index}"
        return name if own == name else f"{name} ({own} in TF_CONFIG)"

    @property
    def _members(self) -> dict[str, str]:
        members = {f"worker {index}": address for index, address in enumerate(self.workers)}
        members |= {f"ps {index}": address for index, address in enumerate(self.ps)}
        return members if self.controller is None else members | {"controller": self.controller}


def check_role(environment: str, role: Any) -> Role:
    """Returns a role that an environment defined, or raises an error that names the environment.

    Args:
      environment: name of the environment.
      role: what its function returned.

    Example:
      >>> check_role("acme", Role("worker", 2, ("a:2222", "b:2222")))
      Traceback (most recent call last):
      ...
      moxing.tensorflow.cluster.roles.RoleError: The cluster environment 'acme' returned Role(job='worker', index=2) \
with 2 workers: expected an index from 0 to 1.
    """
    returned = f"The cluster environment {environment!r} returned "
    if not isinstance(role, Role):
        raise RoleError(f"{returned}{role!r}; expected a Role, or None outside of the environment.")
    if role.job not in _JOBS:
        chief = " The chief is worker 0." if role.job == "chief" else ""
        raise RoleError(f"{returned}Role(job={role.job!r}): {expected_one_of(str(role.job), _JOBS)}{chief}")
    for name, hosts in (("workers", role.workers), ("ps", role.ps)):
        if not isinstance(hosts, tuple | list) or not all(isinstance(host, str) for host in hosts):
            raise RoleError(f"{returned}Role({name}={hosts!r}): expected a tuple of host:port strings.")
    if isinstance(role.index, bool) or not isinstance(role.index, int):
        raise RoleError(f"{returned}Role(index={role.index!r}): expected an integer.")
    if role.job != "evaluator":
        _check_hosts(returned, role)
    return replace(role, workers=tuple(role.workers), ps=tuple(role.ps))


def _check_hosts(returned: str, role: Role) -> None:
    controllers = [] if role.controller is None else [role.controller]
    if role.is_cluster:
        try:
            check_addresses({"workers": role.workers, "ps": role.ps, "controller": controllers})
        except RoleError as error:
            raise RoleError(f"{returned}a Role with a wrong address: {error}") from None
        if not role.workers:
            raise RoleError(
                f"{returned}a Role with ps or controller and workers=(): expected all host:port of workers."
            )
    counts = {"worker": role.num_workers, "ps": len(role.ps), "controller": len(controllers)}
    count = counts[role.job]
    if 0 <= role.index < count:
        return
    hosts = f"{count} worker{'s' if count > 1 else ''}" if role.job == "worker" else f"{count} {role.job}"
    expected = f"an index from 0 to {count - 1}" if count > 1 else "index=0"
    if not count:
        expected = f"the host:port of this process in {role.job}"
    raise RoleError(f"{returned}Role(job={role.job!r}, index={role.index}) with {hosts}: expected {expected}.")


def check_index(name: str, index: int, list_name: str, hosts: Sequence[str]) -> None:
    """Raises an error if `index` is out of range for `hosts`; the names are for the message.

    Example:
      >>> check_index("--task_index", 2, "--ps_hosts", ["a:2222", "b:2222"])
      Traceback (most recent call last):
      ...
      moxing.tensorflow.cluster.roles.RoleError: --task_index=2: --ps_hosts has 2 hosts (a:2222,b:2222), \
expected 0 to 1.
    """
    if 0 <= index < len(hosts):
        return
    count = "1 host" if len(hosts) == 1 else f"{len(hosts)} hosts"
    expected = "0" if len(hosts) == 1 else f"0 to {len(hosts) - 1}"
    raise RoleError(f"{name}={index}: {list_name} has {count} ({','.join(hosts)}), expected {expected}.")


def check_addresses(lists: Mapping[str, Sequence[str]]) -> None:
    """Raises an error if an address is not host:port, or is listed twice.

    Example:
      >>> check_addresses({"--worker_hosts": ["a:2222"], "--ps_hosts": ["a:2222"]})
      Traceback (most recent call last):
      ...
      moxing.tensorflow.cluster.roles.RoleError: --ps_hosts: a:2222 is in --worker_hosts too; every process needs its \
own host:port.
    """
    seen: dict[tuple[str, int], str] = {}
    for name, addresses in lists.items():
        for address in addresses:
            try:
                host, port = split_address(address)
            except ValueError as error:
                raise RoleError(f"{name}={','.join(addresses)}: {error}") from None
            first = seen.get((host.lower(), port))
            if first is not None:
                where = "listed twice" if first == name else f"in {first} too"
                raise RoleError(f"{name}: {address} is {where}; every process needs its own host:port.")
            seen[host.lower(), port] = name


def split_address(address: str) -> tuple[str, int]:
    """Splits `host:port`; an IPv6 address is in brackets.

    Example:
      >>> split_address("[fd00::2]:2222")
      ('fd00::2', 2222)
      >>> split_address("gpu-1")
      Traceback (most recent call last):
      ...
      ValueError: 'gpu-1' has no port; expected host:port, such as gpu-1:2222.
    """
    host, colon, port = address.rpartition(":")
    if not colon or (address.startswith("[") and not host.endswith("]")):
        raise ValueError(f"{address!r} has no port; expected host:port, such as {address or 'localhost'}:2222.")
    bare = host[1:-1] if host.startswith("[") else host
    if not bare:
        raise ValueError(f"{address!r} has no host; expected host:port, such as localhost{address}.")
    if ":" in bare and bare == host:
        raise ValueError(f"{address!r} is ambiguous; write an IPv6 address in brackets, such as [fd00::2]:2222.")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{address!r} has the port {port!r}; expected a number from 1 to 65535.")
    return bare, int(port)

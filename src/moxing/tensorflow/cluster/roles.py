"""The role of this process in a job: which worker or ps it is, and where the others are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moxing.framework.flags import FLAGS, FlagError, expected_one_of

_JOBS = ("ps", "worker", "controller")


class RoleError(FlagError):
    """The flags or the environment do not say who this process is, or contradict themselves or another process's."""


@dataclass(frozen=True)
class Role:
    """Who this process is and who the others are. The default is a process on its own.

    Attributes:
      job: "worker", "ps", "controller" or "evaluator".
      index: The number of this process in its job.
      workers: host:port of the workers; worker 0 is the chief.
      ps: host:port of the parameter servers.
      controller: host:port of the controller of a job without ps.
      origin: What told us, for messages, such as "--worker_hosts" or "TF_CONFIG".

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

    @property
    def is_cluster(self) -> bool:
        """Whether the job is more than this one process."""
        return len(self.workers) > 1 or bool(self.ps) or self.controller is not None

    @property
    def is_chief(self) -> bool:
        """Whether this process saves the checkpoints and writes the summaries."""
        return self.job == "worker" and self.index == 0

    @property
    def num_workers(self) -> int:
        """How many workers share the data."""
        return max(1, len(self.workers))

    @property
    def name(self) -> str:
        """The name of this process in messages."""
        return self.job if self.job == "controller" else f"{self.job} {self.index}"

    @property
    def address(self) -> str | None:
        """host:port of this process, None where it has none."""
        return self._members.get(self.name)

    @property
    def peers(self) -> dict[str, str]:
        """The name and the address of all the others. An evaluator has none and is nobody's peer."""
        if self.job == "evaluator":
            return {}
        return {name: address for name, address in self._members.items() if name != self.name}

    @property
    def spec(self) -> dict[str, list[str]]:
        """The jobs and their addresses, for `tf.train.ClusterSpec`."""
        controller = [] if self.controller is None else [self.controller]
        jobs = {"worker": list(self.workers), "ps": list(self.ps), "controller": controller}
        return {job: addresses for job, addresses in jobs.items() if addresses}

    @property
    def _members(self) -> dict[str, str]:
        members = {f"worker {index}": address for index, address in enumerate(self.workers)}
        members |= {f"ps {index}": address for index, address in enumerate(self.ps)}
        return members if self.controller is None else members | {"controller": self.controller}


def current_role() -> Role:
    """The role of this process: by its flags, else by the environment it was started in, else alone.

    Raises:
      RoleError: Where the flags or the environment contradict themselves.

    Example:
      >>> current_role()
      Role(job='worker', index=0, workers=(), ps=(), controller=None, origin='')
    """
    from moxing.tensorflow.cluster import environments  # late, because the environments make roles

    return _role_of_flags() or environments.detect() or Role()


def _role_of_flags() -> Role | None:
    """The role that the flags give, None where they name no host."""
    job, index = FLAGS.get("job_name") or "", FLAGS.get("task_index") or 0
    workers, ps, controllers = (_hosts(name) for name in ("worker_hosts", "ps_hosts", "controller_host"))
    if job not in ("", *_JOBS):
        raise RoleError(f"--job_name={job}: {expected_one_of(job, _JOBS)}")
    if job == "ps" and not ps:
        raise RoleError("--job_name=ps without --ps_hosts: give the host:port list of all parameter servers.")
    if job == "controller" and not controllers:
        raise RoleError("--job_name=controller without --controller_host: give the controller's host:port.")
    if not workers:
        _require_no_hosts(index, ps, controllers)
        return None
    if len(workers) == 1 and not ps and not controllers:
        # Nobody connects to a worker on its own, so that its host needs no port.
        check_index("--task_index", index, "--worker_hosts", workers)
        return Role(workers=tuple(workers), origin="--worker_hosts")
    lists = {"--worker_hosts": workers, "--ps_hosts": ps, "--controller_host": controllers}
    check_addresses(lists)
    if len(controllers) > 1:
        raise RoleError(f"--controller_host={','.join(controllers)}: expected one host:port.")
    if not job:
        raise RoleError(
            f"--worker_hosts={','.join(workers)}{_given('ps_hosts', ps)}{_given('controller_host', controllers)} is a "
            f"cluster: give --job_name ({', '.join(_JOBS)}) and --task_index, which say which of these this process is."
        )
    name = "--controller_host" if job == "controller" else f"--{job}_hosts"
    check_index("--task_index", index, name, lists[name])
    return Role(job, index, tuple(workers), tuple(ps), controllers[0] if controllers else None, origin=name)


def _hosts(name: str) -> list[str]:
    text = (FLAGS.get(name) or "").strip().rstrip(",")
    return [host.strip() for host in text.split(",")] if text else []


def _given(name: str, hosts: Sequence[str]) -> str:
    return f" --{name}={','.join(hosts)}" if hosts else ""


def _require_no_hosts(index: int, ps: Sequence[str], controllers: Sequence[str]) -> None:
    for name, hosts in (("ps_hosts", ps), ("controller_host", controllers)):
        if hosts:
            raise RoleError(
                f"--{name}={','.join(hosts)} without --worker_hosts: give the host:port list of all workers too."
            )
    if index:
        raise RoleError(
            f"--task_index={index} without --worker_hosts: give the list of hosts that it counts in, "
            "or leave --task_index out for one process."
        )


def check_index(name: str, index: int, list_name: str, hosts: Sequence[str]) -> None:
    """Raises an error where `index` is no place in `hosts`; the names are those the user knows them by.

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
    """Raises an error where an address is not host:port or stands twice, in one list or in two.

    Example:
      >>> check_addresses({"--worker_hosts": ["a:2222"], "--ps_hosts": ["a:2222"]})
      Traceback (most recent call last):
      ...
      moxing.tensorflow.cluster.roles.RoleError: --ps_hosts: a:2222 stands in --worker_hosts too; every process needs \
its own host:port.
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
                where = "there twice" if first == name else f"in {first} too"
                raise RoleError(f"{name}: {address} stands {where}; every process needs its own host:port.")
            seen[host.lower(), port] = name


def split_address(address: str) -> tuple[str, int]:
    """The host and the port of `host:port`; an IPv6 address stands in brackets.

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

"""Whether the peers can be reached at the start of a job, and the likely reasons if they cannot."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable, Iterable, Mapping

from moxing.framework.util.interfaces import open_interfaces
from moxing.tensorflow.cluster.peers import Target
from moxing.tensorflow.cluster.ports import listeners
from moxing.tensorflow.cluster.proxies import proxy_problems
from moxing.tensorflow.cluster.roles import Role, split_address

#: Seconds after which a process that waits for its peers logs the reasons.
WAIT_MESSAGE_AFTER = 30.0
#: Seconds between two such messages.
WAIT_MESSAGE_EVERY = 120.0


def unreachable(peers: Mapping[str, str], timeout: float = 2.0) -> dict[str, str]:
    """Returns the peers whose port refuses connections or does not answer, with the reason; tries all in parallel.

    Args:
      peers: the addresses of the peers, by name.
      timeout: seconds that each may take to answer.

    Example:
      >>> with socket.create_server(("127.0.0.1", 0)) as server:
      ...     address = f"127.0.0.1:{server.getsockname()[1]}"
      ...     unreachable({"ps 0": address})
      {}
      >>> unreachable({"ps 0": address})
      {'ps 0': 'connection refused'}
    """
    targets = {name: Target(address) for name, address in peers.items()}
    answers: dict[str, str] = {}

    def ask(name: str) -> None:
        answer = targets[name].probe(timeout)
        if answer.state != "open":
            answers[name] = answer.detail

    _in_parallel(ask, targets)
    return {name: answers[name] for name in peers if name in answers}


def not_servers(peers: Mapping[str, str], timeout: float = 2.0) -> dict[str, str]:
    """Returns the peers whose port is open but has no TensorFlow server, with the reason.

    Some networks accept connections to any address; or another program uses the port.

    Args:
      peers: the addresses of the peers, by name.
      timeout: seconds that each may take to answer.
    """
    answers: dict[str, str] = {}

    def ask(name: str) -> None:
        if not _is_grpc_server(peers[name], timeout):
            answers[name] = "the port is open, but no TensorFlow server answers"

    _in_parallel(ask, peers)
    return {name: answers[name] for name in peers if name in answers}


def _is_grpc_server(address: str, timeout: float) -> bool:
    """Sends the HTTP/2 preface, as gRPC does: a server answers with a SETTINGS frame."""
    try:
        with socket.create_connection(split_address(address), timeout) as connection:
            connection.settimeout(timeout)
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
            return connection.recv(9)[3:4] == b"\x04"
    except OSError:
        return False


def _in_parallel(ask: Callable[[str], None], names: Iterable[str]) -> None:
    threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def explain(role: Role, missing: Mapping[str, str]) -> str:
    """Returns the message of a process that waits for its peers: the missing peers and the likely reasons.

    Args:
      role: the role of this process.
      missing: the peers that cannot be reached or have not joined, with the reason.

    Example:
      >>> role = Role("worker", 0, workers=("127.0.0.1:2222", "127.0.0.1:2223"), origin="--worker_hosts")
      >>> print(explain(role, {"worker 1": "connection refused"}).splitlines()[1])
        worker 1 at 127.0.0.1:2223: connection refused
    """
    peers = role.peers
    if missing:
        verb = "misses" if _present(missing) else "cannot reach"
        lines = [f"{role.name} ({role.address}) {verb} {len(missing)} of its {len(peers)} peers:"]
        lines += [f"  {name} at {peers.get(name, 'an unknown address')}: {why}" for name, why in missing.items()]
    else:
        lines = [f"{role.name} ({role.address}) waits, although the ports of its {len(peers)} peers are open."]
    reasons = [
        *_wrong_index(role),
        *_port_in_use(role),
        *proxy_problems(peers.values()),
        *_likely_reasons(missing),
    ]
    return "\n".join([*lines, "Likely reasons:", *(f"  - {reason}" for reason in reasons)])


def _present(missing: Mapping[str, str]) -> list[str]:
    """The peers whose port is open."""
    return [name for name, why in missing.items() if why.startswith(("the process is there", "the port is open"))]


def _likely_reasons(missing: Mapping[str, str]) -> list[str]:
    unresolved = [name for name, why in missing.items() if "resolve" in why]
    refused = [name for name, why in missing.items() if "refused" in why]
    present = _present(missing)
    silent = [name for name in missing if name not in (*unresolved, *refused, *present)]
    reasons = []
    if unresolved:
        reasons.append(f"The host name of {', '.join(unresolved)} is misspelled, or is not in DNS or /etc/hosts.")
    if refused:
        reasons.append(
            f"{', '.join(refused)} has not started yet or has ended (its machine answers, the port is closed); "
            "read its log, and compare the host lists of all processes."
        )
    if silent:
        reasons.append(
            f"A firewall drops packets to {', '.join(silent)}, or that machine is down or has another address."
        )
    if present:
        reasons.append(
            f"{', '.join(present)} is waiting for other processes (its log says for which), or was started with other "
            "host lists or another --task_index, or another program uses its port."
        )
    if not missing:
        reasons.append(
            "Another program listens on a peer's port, or a peer was started with other host lists or another "
            "--task_index; compare the command lines of all processes."
        )
    return reasons


def _wrong_index(role: Role) -> list[str]:
    """A process whose address is not on this machine probably has the wrong task_index."""
    if role.address is None or _is_here(role.address) is not False:
        return []
    here = [f"{name} ({address})" for name, address in _job_members(role) if name != role.name and _is_here(address)]
    hint = f"; on this machine is the address of {', '.join(here)}" if here else ""
    index = "--task_index" if role.origin.startswith("--") else f"the index in {role.origin or 'the environment'}"
    return [
        f"Wrong task_index for this machine: {index} makes it {role.name} at {role.address}, but this machine has "
        f"the addresses {', '.join(open_interfaces()) or '127.0.0.1 only'}{hint}."
    ]


def _job_members(role: Role) -> list[tuple[str, str]]:
    return [(name, address) for name, address in role.peers.items() if name.split()[0] == role.job]


def _is_here(address: str) -> bool | None:
    """Whether the host is this machine; None if its name does not resolve."""
    endpoints = Target(address).endpoints()
    return any(_can_bind(family, address[0]) for family, address in endpoints) if endpoints else None


def _can_bind(family: int, host: str) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as own:
            own.bind((host, 0))
    except OSError as error:
        return error.errno != errno.EADDRNOTAVAIL
    return True


def _port_in_use(role: Role) -> list[str]:
    if role.address is None:
        return []
    port = split_address(role.address)[1]
    others = [user for user in listeners(port) if user.pid != os.getpid()]
    return [f"Port {port} of {role.name} is in use on this machine by {user}." for user in others]

"""Reaching the peers at the start: what keeps a worker waiting, ports in use, proxies, open interfaces."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from moxing.framework.util.interfaces import open_interfaces
from moxing.tensorflow.cluster.peers import Target
from moxing.tensorflow.cluster.roles import Role, RoleError, split_address

#: A worker that has waited so many seconds for its peers says why.
WAIT_MESSAGE_AFTER = 30.0
#: And again as often as this, since a log is long.
WAIT_MESSAGE_EVERY = 120.0

#: What gRPC looks for a proxy in, and for the hosts to reach without one; it takes the first of each that is set.
_PROXIES_OF_GRPC = ("grpc_proxy", "https_proxy", "http_proxy")
_EXCEPTIONS_OF_GRPC = ("no_grpc_proxy", "no_proxy")
#: What other programs look in as well.
_PROXIES = (*_PROXIES_OF_GRPC, "all_proxy", "GRPC_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")


def unreachable(peers: Mapping[str, str], timeout: float = 2.0) -> dict[str, str]:
    """The peers whose port cannot be connected to, each with the reason; all are tried at the same time.

    Args:
      peers: The addresses of the peers, by name.
      timeout: Seconds that each may take to answer.

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

    _at_the_same_time(ask, targets)
    return {name: answers[name] for name in peers if name in answers}


def not_servers(peers: Mapping[str, str], timeout: float = 2.0) -> dict[str, str]:
    """The peers whose port can be connected to but where no TensorFlow server answers, each with the reason.

    Some networks accept a connection to any address; another program may have the port.

    Args:
      peers: The addresses of the peers, by name.
      timeout: Seconds that each may take to answer.
    """
    answers: dict[str, str] = {}

    def ask(name: str) -> None:
        if not _answers_like_a_server(peers[name], timeout):
            answers[name] = "the port is open, but no TensorFlow server answers"

    _at_the_same_time(ask, peers)
    return {name: answers[name] for name in peers if name in answers}


def _answers_like_a_server(address: str, timeout: float) -> bool:
    """Greets as gRPC does, by HTTP/2: a server answers with a frame of its settings."""
    try:
        with socket.create_connection(split_address(address), timeout) as connection:
            connection.settimeout(timeout)
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
            return connection.recv(9)[3:4] == b"\x04"
    except OSError:
        return False


def _at_the_same_time(ask: Callable[[str], None], names: Iterable[str]) -> None:
    threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def explain(role: Role, missing: Mapping[str, str]) -> str:
    """What a process that waits for its peers tells its user: which ones it misses, and the likely reasons.

    Args:
      role: Who this process is.
      missing: The reason for every peer that cannot be reached, as `unreachable` finds it, or has not joined.

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
        *_wrong_place(role),
        *_taken_port(role),
        *_proxies_in_the_way(peers.values()),
        *_reasons_of_answers(missing),
    ]
    return "\n".join([*lines, "Likely reasons:", *(f"  - {reason}" for reason in reasons)])


def _present(missing: Mapping[str, str]) -> list[str]:
    """Those whose port somebody has opened."""
    return [name for name, why in missing.items() if why.startswith(("the process is there", "the port is open"))]


def _reasons_of_answers(missing: Mapping[str, str]) -> list[str]:
    unresolved = [name for name, why in missing.items() if "resolve" in why]
    refused = [name for name, why in missing.items() if "refused" in why]
    present = _present(missing)
    silent = [name for name in missing if name not in (*unresolved, *refused, *present)]
    reasons = []
    if unresolved:
        reasons.append(
            f"The host name of {', '.join(unresolved)} is misspelt, or neither the name server nor /etc/hosts knows it."
        )
    if refused:
        reasons.append(
            f"{', '.join(refused)} has not started yet or has already ended (its machine answers, the port is closed); "
            "look at its log, and compare the host lists of all processes."
        )
    if silent:
        reasons.append(
            f"A firewall drops what is sent to {', '.join(silent)}, or that machine is down or has another address."
        )
    if present:
        reasons.append(
            f"{', '.join(present)} is waiting for others itself (its log says for whom), or was started with other "
            "host lists or another --task_index, or another program has its port."
        )
    if not missing:
        reasons.append(
            "Another program listens on a peer's port, or a peer was started with other host lists or another "
            "--task_index; compare the command lines of all processes."
        )
    return reasons


def _wrong_place(role: Role) -> list[str]:
    """A process whose own address is not of this machine most likely has somebody else's task_index."""
    if role.address is None or _is_here(role.address) is not False:
        return []
    here = [f"{name} ({address})" for name, address in _job_members(role) if name != role.name and _is_here(address)]
    hint = f"; an address of this machine has {', '.join(here)}" if here else ""
    index = "--task_index" if role.origin.startswith("--") else f"the index in {role.origin or 'the environment'}"
    return [
        f"Wrong task_index for this machine: {index} says that this is {role.name} at {role.address}, but this machine "
        f"has the addresses {', '.join(open_interfaces()) or '127.0.0.1 only'}{hint}."
    ]


def _job_members(role: Role) -> list[tuple[str, str]]:
    return [(name, address) for name, address in role.peers.items() if name.split()[0] == role.job]


def _is_here(address: str) -> bool | None:
    """Whether the host is this machine, None where its name does not resolve."""
    endpoints = Target(address).endpoints()
    return any(_can_bind(family, place[0]) for family, place in endpoints) if endpoints else None


def _can_bind(family: int, host: str) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as own:
            own.bind((host, 0))
    except OSError as error:
        return error.errno != errno.EADDRNOTAVAIL
    return True


def _taken_port(role: Role) -> list[str]:
    if role.address is None:
        return []
    port = split_address(role.address)[1]
    others = [user for user in _listeners(port) if user[0] != os.getpid()]
    return [f"Port {port} of {role.name} is in use on this machine by {_described(user)}." for user in others]


def check_port_free(address: str, name: str = "this process") -> None:
    """Raises an error where another program has the port of `address` on this machine.

    Args:
      address: host:port of this process; it listens on all addresses of the machine, so that only the port counts.
      name: What to call this process in the error, such as "worker 1".

    Raises:
      ValueError: Where the port is in use. A port that merely cools down after its last user is free.
      RoleError: Where this user may not have it.

    Example:
      >>> with socket.create_server(("127.0.0.1", 0)) as server:
      ...     address = f"127.0.0.1:{server.getsockname()[1]}"
      >>> check_port_free(address, "worker 1")
    """
    port = split_address(address)[1]
    code = _bind_everywhere(port)
    if code == errno.EADDRINUSE:
        users = ", ".join(_described(user) for user in _listeners(port)) or "another program"
        raise ValueError(
            f"port {port} of {name} is in use on this machine: {users} has it. "
            f"End that, or give {name} another port in the host list of all processes."
        )
    if code == errno.EACCES:
        raise RoleError(f"port {port} of {name} is reserved on this machine; take one from 1024 up.")


def _bind_everywhere(port: int) -> int:
    """The error code of binding as TensorFlow's server does, on IPv6 and IPv4, reusing what cools down; 0 for none."""
    for family, host in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as own:
                own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                own.bind((host, port))
                return 0
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return error.errno
    return 0


def _described(user: tuple[int, str]) -> str:
    return f"process {user[0]} ({user[1]})"


def _listeners(port: int) -> list[tuple[int, str]]:
    """The processes that listen on a port, with their command lines, as far as this user may see them."""
    sockets = {f"socket:[{inode}]" for table in ("tcp", "tcp6") for inode in _listening_inodes(table, port)}
    found = []
    for directory in Path("/proc").glob("[0-9]*/fd") if sockets else []:
        try:
            if any(os.readlink(link) in sockets for link in directory.iterdir()):
                command = (directory.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append((int(directory.parent.name), command.strip()[:80]))
        except OSError:  # another user's process, or one that has just ended
            continue
    return found


def _listening_inodes(table: str, port: int) -> list[str]:
    try:
        lines = Path("/proc/net", table).read_text().splitlines()[1:]
    except OSError:
        return []
    rows = [line.split() for line in lines]
    # Columns: number, local address:port in hexadecimal, remote, state (0A is listening), ..., inode.
    return [row[9] for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port]


def _proxies_in_the_way(addresses: Iterable[str]) -> list[str]:
    exceptions = _first_set(*_EXCEPTIONS_OF_GRPC)
    hosts = [host for host in _hosts(addresses) if not _is_exception(host, exceptions)]
    name = next((name for name in _PROXIES_OF_GRPC if os.environ.get(name)), None)
    if not hosts or name is None:
        return []
    # Not the whole value: a proxy's address may hold a password.
    proxy = urlsplit(os.environ[name]).hostname or "a proxy"
    return [
        f"A proxy in the environment: {name} ({proxy}) does not leave out {', '.join(hosts)}; "
        f"unset it, or add to no_proxy {','.join(hosts)}."
    ]


def _hosts(addresses: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(split_address(address)[0] for address in addresses))


def without_proxies(addresses: Iterable[str]) -> dict[str, str]:
    """Tells gRPC, through the environment, to connect to these addresses without a proxy.

    Args:
      addresses: host:port of all processes of the job.

    Returns:
      The variables that it set and their new values; none where the environment has no proxy.

    Example:
      >>> os.environ["https_proxy"] = "http://proxy:3128"
      >>> without_proxies(["10.0.0.2:2222"])
      {'no_grpc_proxy': '10.0.0.2', 'no_proxy': '10.0.0.2', 'NO_PROXY': '10.0.0.2'}
      >>> for name in ("https_proxy", "no_grpc_proxy", "no_proxy", "NO_PROXY"):
      ...     del os.environ[name]
    """
    if not any(os.environ.get(name) for name in _PROXIES):
        return {}
    hosts = _hosts(addresses)
    # A variable that is not set begins as a copy of those that were asked in its place, or it would hide them.
    before = {
        "no_grpc_proxy": _first_set("no_grpc_proxy", "no_proxy", "NO_PROXY"),
        "no_proxy": _first_set("no_proxy", "NO_PROXY"),
        "NO_PROXY": _first_set("NO_PROXY", "no_proxy"),
    }
    changed = {}
    for name, exceptions in before.items():
        missing = [host for host in hosts if not _is_exception(host, exceptions)]
        after = ",".join([*([exceptions] if exceptions else []), *missing])
        if after != os.environ.get(name, ""):
            changed[name] = after
    os.environ.update(changed)
    return changed


def _first_set(*names: str) -> str:
    return next((value for name in names if (value := os.environ.get(name, "").strip().strip(","))), "")


def _is_exception(host: str, exceptions: str) -> bool:
    """Whether gRPC finds `host` in a no_proxy list: it looks at endings of names and at networks, not at `*`."""
    for entry in (entry.strip().lower() for entry in exceptions.split(",")):
        if entry and host.lower().endswith(entry):
            return True
        try:
            if "/" in entry and ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False):
                return True
        except ValueError:  # a name is in no network
            continue
    return False

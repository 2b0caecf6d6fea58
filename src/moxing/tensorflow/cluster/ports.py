"""Ports of this machine: whether one is free, and which processes listen on it."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from typing import NamedTuple

from moxing.tensorflow.cluster.roles import RoleError, split_address


class Listener(NamedTuple):
    """A process that listens on a port."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})"


def check_port_free(address: str, name: str = "this process") -> None:
    """Raises an error if another program uses the port of `address` on this machine.

    Args:
      address: host:port of this process. It listens on all interfaces, so only the port matters.
      name: the name of this process in the error, for example "worker 1".

    Raises:
      ValueError: the port is in use. A port in TIME_WAIT is free.
      RoleError: this user may not use the port.

    Example:
      >>> with socket.create_server(("127.0.0.1", 0)) as server:
      ...     address = f"127.0.0.1:{server.getsockname()[1]}"
      >>> check_port_free(address, "worker 1")
    """
    port = split_address(address)[1]
    code = _bind_everywhere(port)
    if code == errno.EADDRINUSE:
        users = ", ".join(str(user) for user in listeners(port)) or "another program"
        raise ValueError(
            f"port {port} of {name} is in use on this machine: {users} has it. "
            f"End that process, or give {name} another port in the host lists of all processes."
        )
    if code == errno.EACCES:
        raise RoleError(f"port {port} of {name} is reserved on this machine; use a port of 1024 or above.")


def _bind_everywhere(port: int) -> int:
    """Binds as TensorFlow's server does, on IPv6 and IPv4 with SO_REUSEADDR; returns the error code, or 0."""
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


def listeners(port: int) -> list[Listener]:
    """Returns the processes that listen on a port, as far as this user may see them."""
    sockets = {f"socket:[{inode}]" for table in ("tcp", "tcp6") for inode in _listening_inodes(table, port)}
    found = []
    for directory in Path("/proc").glob("[0-9]*/fd") if sockets else []:
        try:
            if any(os.readlink(link) in sockets for link in directory.iterdir()):
                command = (directory.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(Listener(int(directory.parent.name), command.strip()[:80]))
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

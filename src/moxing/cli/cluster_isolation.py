"""A network of its own for a cluster on this machine: `moxing run --workers 2 --isolate`.

TensorFlow's servers listen on every interface and execute any graph that reaches them. In a network namespace with
nothing but a loopback interface nobody else reaches them. Importing this imports no TensorFlow.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1

#: Switches of the kernel that forbid namespaces to users, with the value that forbids.
_SWITCHES = {
    "/proc/sys/user/max_user_namespaces": "0",
    "/proc/sys/user/max_net_namespaces": "0",
    "/proc/sys/kernel/unprivileged_userns_clone": "0",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
}


class IsolationError(RuntimeError):
    """The kernel does not give this process a network of its own."""


def enter_private_network() -> None:
    """Moves this process into a new network that has a loopback interface only; its children start there.

    There is no way back, and the process must have a single thread. The user and the rights to files stay the same.

    Raises:
      IsolationError: the kernel does not allow it. The process may be left with no network at all.

    Example:
      >>> code = 'from moxing.cli import cluster_isolation as c; c.enter_private_network(); print(c.interfaces())'
      >>> print(subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout.strip()
      ...       if why_not() is None else ['lo'])
      ['lo']
    """
    if not sys.platform.startswith("linux"):
        raise IsolationError(f"network namespaces are a part of Linux; this is {sys.platform}")
    user, group = os.geteuid(), os.getegid()
    # Root needs no user namespace, but root in a container often may not make a network without one.
    if user != 0 or _unshare(_CLONE_NEWNET) is not None:
        problem = _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
        if problem is not None:
            raise IsolationError(f"the kernel refuses a network namespace ({problem}){_forbidding_switches()}")
        _keep_user(user, group)
    _bring_up_loopback()


def why_not() -> str | None:
    """Why the kernel gives no private network to processes of this user, or None: it does.

    A process that has done its work is asked, so that this one stays where it is.

    Example:
      >>> reason = why_not()
      >>> reason is None or len(reason) > 10
      True
    """
    code = "from moxing.cli import cluster_isolation as c; raise SystemExit(c._attempt())"
    # The current directory is left out of the search path: a module of the user's may have any name.
    answer = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, errors="replace")
    if answer.returncode == 0:
        return None
    return answer.stderr.strip() or f"the attempt ended with exit code {answer.returncode}"


def interfaces() -> list[str]:
    """The names of the network interfaces that this process sees.

    Example:
      >>> 'lo' in interfaces() or not sys.platform.startswith('linux')
      True
    """
    return [name for _, name in socket.if_nameindex()]


def _attempt() -> str | int:
    try:
        enter_private_network()
    except IsolationError as error:
        return str(error)
    return 0


def _unshare(flags: int) -> str | None:
    """What is wrong, or None."""
    libc = ctypes.CDLL(None, use_errno=True)
    return None if libc.unshare(flags) == 0 else os.strerror(ctypes.get_errno())


def _keep_user(user: int, group: int) -> None:
    """In the new user namespace this process is who it was."""
    try:
        # Without it an ordinary user may not map the group.
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}"
        raise IsolationError(f"the kernel refuses a user namespace ({problem}){_forbidding_switches()}") from None


def _bring_up_loopback() -> None:
    import fcntl

    request = struct.pack("16sh22x", b"lo", _IFF_UP)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            fcntl.ioctl(control, _SIOCSIFFLAGS, request)
    except OSError as error:
        raise IsolationError(
            f"the kernel refuses to bring up the loopback interface ({error.strerror}){_forbidding_switches()}"
        ) from None


def _forbidding_switches() -> str:
    found = []
    for path, forbidden in _SWITCHES.items():
        try:
            if Path(path).read_text().strip() == forbidden:
                found.append(f"{path} is {forbidden}")
        except OSError:
            continue
    return f"; {', '.join(found)}" if found else "; the machine or its container forbids it"

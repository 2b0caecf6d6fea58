"""A private network for a cluster on this machine: `moxing run --workers 2 --isolate`.

TensorFlow's servers listen on every interface and execute any graph that they receive. In a network namespace with only
a loopback interface, nothing outside can reach them. This module does not import TensorFlow.
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

#: Kernel settings that can forbid namespaces, with the forbidding value.
_KERNEL_SETTINGS = {
    "/proc/sys/user/max_user_namespaces": "0",
    "/proc/sys/user/max_net_namespaces": "0",
    "/proc/sys/kernel/unprivileged_userns_clone": "0",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
}


class IsolationError(RuntimeError):
    """The kernel does not allow a private network."""


def enter_private_network() -> None:
    """Moves this process into a new network namespace with only a loopback interface; child processes inherit it.

    This cannot be undone, and the process must have a single thread. User and file permissions stay the same.

    Raises:
      IsolationError: the kernel does not allow it. The process may be left with no network at all.

    Example:
      >>> code = 'from moxing.cli.cluster import isolation as c; c.enter_private_network(); print(c.interfaces())'
      >>> print(subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout.strip()
      ...       if why_not() is None else ['lo'])
      ['lo']
    """
    if not sys.platform.startswith("linux"):
        raise IsolationError(f"network namespaces exist only on Linux; this is {sys.platform}")
    user, group = os.geteuid(), os.getegid()
    # Root needs no user namespace, but root in a container often needs one to create a network namespace.
    if user != 0 or _unshare(_CLONE_NEWNET) is not None:
        problem = _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
        if problem is not None:
            raise IsolationError(f"the kernel refuses a network namespace ({problem}){_forbidding_settings()}")
        _keep_user(user, group)
    _bring_up_loopback()


def why_not() -> str | None:
    """Returns why the kernel allows no private network for this user, or None if it does.

    A child process tries it, so that this process does not change.

    Example:
      >>> reason = why_not()
      >>> reason is None or len(reason) > 10
      True
    """
    code = "from moxing.cli.cluster import isolation as c; raise SystemExit(c._attempt())"
    # -P leaves the current directory out of sys.path: the user's modules may have any name.
    answer = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, errors="replace")
    if answer.returncode == 0:
        return None
    return answer.stderr.strip() or f"the attempt ended with exit code {answer.returncode}"


def interfaces() -> list[str]:
    """Returns the names of the network interfaces that this process sees.

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
    """Returns the error message, or None."""
    libc = ctypes.CDLL(None, use_errno=True)
    return None if libc.unshare(flags) == 0 else os.strerror(ctypes.get_errno())


def _keep_user(user: int, group: int) -> None:
    """Maps user and group to themselves in the new user namespace."""
    try:
        # Required before an unprivileged user may map the group.
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}"
        raise IsolationError(f"the kernel refuses a user namespace ({problem}){_forbidding_settings()}") from None


def _bring_up_loopback() -> None:
    import fcntl

    request = struct.pack("16sh22x", b"lo", _IFF_UP)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            fcntl.ioctl(control, _SIOCSIFFLAGS, request)
    except OSError as error:
        raise IsolationError(
            f"the kernel refuses to bring up the loopback interface ({error.strerror}){_forbidding_settings()}"
        ) from None


def _forbidding_settings() -> str:
    found = []
    for path, forbidden in _KERNEL_SETTINGS.items():
        try:
            if Path(path).read_text().strip() == forbidden:
                found.append(f"{path} is {forbidden}")
        except OSError:
            continue
    return f"; {', '.join(found)}" if found else "; the machine or its container forbids it"

"""The clients of this process: one for `s3://`, one for `obs://`, recreated when their configuration changes."""

from __future__ import annotations

import os
import threading
from typing import Any

from moxing.framework.file.auth import get_settings
from moxing.framework.file.s3.access import VARIABLES, find_access
from moxing.framework.file.s3.client import S3Client
from moxing.framework.file.s3.credentials import Profile

_lock = threading.Lock()
_clients: dict[str, tuple[Any, S3Client]] = {}


def get_client(scheme: str) -> S3Client:
    """Returns the client for `s3://` or `obs://`. It is reused until settings, environment or profile files change."""
    settings = get_settings()
    state = (settings, *map(os.environ.get, VARIABLES), *map(_version, Profile.find(os.environ).files))
    with _lock:
        known = _clients.get(scheme)
        if known is None or known[0] != state:
            known = _clients[scheme] = (state, S3Client(find_access(scheme, settings), scheme))
        return known[1]


def _version(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _reset_in_child() -> None:
    """The child of a fork opens its own connections: two processes on one socket read each other's responses."""
    global _lock
    _lock = threading.Lock()
    _clients.clear()


os.register_at_fork(after_in_child=_reset_in_child)

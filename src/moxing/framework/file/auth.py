"""`set_auth`, and the clients that come of it."""

from __future__ import annotations

import _thread
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moxing.framework.file.access import Settings
    from moxing.framework.file.s3_client import Client

# What `set_auth` needs is imported when it is called: `import moxing` is for local files, too, and is to take no time.
_lock = _thread.allocate_lock()
_settings: Settings | None = None
_clients: dict[str, tuple[Any, Client]] = {}


def set_auth(
    ak: str | None = None,
    sk: str | None = None,
    server: str | None = None,
    port: int | None = None,
    is_secure: bool | None = None,
    ssl_verify: bool | None = None,
    long_conn_mode: bool | None = None,
    path_style: bool | None = None,
    retry: int | None = None,
    retry_wait: float | None = None,
    client_timeout: float | None = None,
    list_max_keys: int | None = None,
    *,
    negotiation: bool | None = None,
    obs_client_log: bool | None = None,
) -> None:
    """Sets how `s3://` and `obs://` urls are reached. What is None stays as it is.

    What was never set comes from the environment (`ACCESS_KEY_ID`, `SECRET_ACCESS_KEY`, `S3_ENDPOINT` and the names of
    AWS and OBS) and then from the AWS profiles.

    Args:
      ak: The access key; `sk` has to be set with it.
      sk: The secret key.
      server: The address of the store: a host, host:port or a url.
      port: Its port, in place of one in `server`.
      is_secure: Whether to use https. By default what `server` says, else https.
      ssl_verify: Whether to check the certificate of the store. By default yes.
      long_conn_mode: Whether to use a connection for more than one request. By default yes.
      path_style: Whether the bucket stands in the path of a request (True) or in the name of the host (False). By
        default in the path, and for the clouds that want it there in the host.
      retry: How often a request is repeated that failed for a reason that may pass. By default 5.
      retry_wait: How many seconds to wait before the first repetition; each further wait is twice as long, with a
        random part. By default 0.2.
      client_timeout: After how many seconds without an answer a request has failed. By default 60.
      list_max_keys: How many names one request of a listing asks for, 1 to 1000. By default 1000.
      negotiation: Whether the kind of signature is negotiated with the store first. There is only one kind here, which
        all stores take: with True as with False there is nothing to negotiate.
      obs_client_log: Whether the client that Huawei publishes for OBS writes a log. Another one is at work here, which
        writes none.

    Raises:
      ValueError: A value that cannot be; nothing is set then.

    Example:
      >>> import moxing as mox
      >>> mox.file.set_auth(retry=5, client_timeout=60)
      >>> mox.file.set_auth(port=0)
      Traceback (most recent call last):
      ...
      ValueError: port=0: expected an integer from 1 to 65535.
    """
    global _settings
    given = dict(locals())
    for name in ("negotiation", "obs_client_log"):
        _check(name, given.pop(name), lambda v: isinstance(v, bool), "True or False")
    _check("server", server, lambda v: isinstance(v, str) and bool(v.strip()), "a string")
    for name in ("ak", "sk"):
        # Read from a file, a key often comes with the end of its line.
        expected = "a string without spaces and line breaks"
        _check(name, given[name], lambda v: isinstance(v, str) and v.split() == [v], expected, secret=True)
    for name, low, high in (("port", 1, 65535), ("list_max_keys", 1, 1000), ("retry", 0, 1000)):
        expected = f"an integer from {low} to {high}"
        _check(name, given[name], lambda v, a=low, b=high: _is_integer(v) and a <= v <= b, expected)
    for name in ("is_secure", "ssl_verify", "long_conn_mode", "path_style"):
        _check(name, given[name], lambda v: isinstance(v, bool), "True or False")
    _check("retry_wait", retry_wait, lambda v: _is_number(v) and 0 <= v <= 3600, "seconds from 0 to 3600")
    _check("client_timeout", client_timeout, lambda v: _is_number(v) and 0 < v <= 86400, "seconds above 0")
    if server is not None:
        from moxing.framework.file.endpoints import parse_server

        parse_server(server, port, is_secure, explicit=is_secure is not None)
    with _lock:
        merged = get_settings().merge(**given)
        if (merged.ak is None) != (merged.sk is None):
            missing, there = ("sk", "ak") if merged.sk is None else ("ak", "sk")
            raise ValueError(f"{missing}: expected with {there}, which is of no use alone.")
        _settings = merged


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check(name: str, value: Any, fits: Any, expected: str, secret: bool = False) -> None:
    if value is not None and not fits(value):
        # Half a key in an error message is still half a key.
        shown = name if secret else f"{name}={value!r}"
        raise ValueError(f"{shown}: expected {expected}.")


def get_settings() -> Settings:
    """What `set_auth` was told so far."""
    from moxing.framework.file.access import Settings

    return _settings or Settings()


def restore_settings(settings: Settings) -> None:
    """Puts other settings in place of all: those of the process that started this one."""
    global _settings
    _settings = settings


def get_client(scheme: str) -> Client:
    """The client for `s3://` or `obs://`. It is kept until the settings, the environment or a profile change."""
    from moxing.framework.file.access import VARIABLES, find_access
    from moxing.framework.file.profiles import profile_files
    from moxing.framework.file.s3_client import Client

    state = (_settings, *map(os.environ.get, VARIABLES), *map(_version, profile_files(os.environ)))
    with _lock:
        known = _clients.get(scheme)
        if known is None or known[0] != state:
            known = _clients[scheme] = (state, Client(find_access(scheme, get_settings()), scheme))
        return known[1]


def _version(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _forget_clients() -> None:
    """A child of a fork makes connections of its own: two processes on one socket would read each other's answers."""
    global _lock
    _lock = _thread.allocate_lock()
    _clients.clear()


os.register_at_fork(after_in_child=_forget_clients)

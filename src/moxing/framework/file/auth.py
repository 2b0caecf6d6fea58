"""`set_auth`: how `s3://` and `obs://` URLs are reached."""

from __future__ import annotations

import _thread
from dataclasses import asdict, dataclass, replace
from typing import Any

_lock = _thread.allocate_lock()


@dataclass(frozen=True)
class Settings:
    """The arguments of all calls of `set_auth` so far; None for what was never set.

    Example:
      >>> Settings(ak='AK', sk='very secret', server='store.example.com')
      Settings(server='store.example.com')
    """

    ak: str | None = None
    sk: str | None = None
    server: str | None = None
    port: int | None = None
    is_secure: bool | None = None
    ssl_verify: bool | None = None
    long_conn_mode: bool | None = None
    path_style: bool | None = None
    retry: int | None = None
    retry_wait: float | None = None
    client_timeout: float | None = None
    list_max_keys: int | None = None

    def merge(self, **changes: Any) -> Settings:
        """Returns these settings with the changes that are not None."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    def to_dict(self) -> dict[str, Any]:
        """Returns all settings including the keys, for the worker processes of a copy."""
        return asdict(self)

    def __repr__(self) -> str:
        shown = {k: v for k, v in asdict(self).items() if v is not None and k not in ("ak", "sk")}
        return f"Settings({', '.join(f'{k}={v!r}' for k, v in shown.items())})"


_settings = Settings()


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
    """Sets how `s3://` and `obs://` URLs are reached. An argument that is None leaves its setting unchanged.

    Settings that were never set come from environment variables (`ACCESS_KEY_ID`, `SECRET_ACCESS_KEY`, `S3_ENDPOINT`
    and the names of AWS and OBS), then from botocore if it is installed (AWS profiles, roles, SSO).

    Args:
      ak: The access key. Requires `sk`.
      sk: The secret key. Requires `ak`.
      server: The address of the store: a host, host:port or a URL.
      port: The port; overrides the one in `server`.
      is_secure: Whether to use https. Default: the scheme of `server`, else https.
      ssl_verify: Whether to verify the certificate of the store. Default: True.
      long_conn_mode: Whether to reuse connections. Default: True.
      path_style: Whether the bucket is part of the path (True) or of the host name (False). Default: of the host name
        for clouds that require it, else of the path.
      retry: How often to retry a request after a transient failure. Default: 5.
      retry_wait: Seconds before the first retry. The wait doubles with each retry and has a random part. Default: 0.2.
      client_timeout: Seconds without a response after which a request has failed. Default: 60.
      list_max_keys: Keys per listing request, 1 to 1000. Default: 1000.
      negotiation: Whether to negotiate the signature version with the store. No effect: there is only one version,
        which all stores accept.
      obs_client_log: Whether Huawei's OBS SDK writes a log. No effect: this client is another one and writes none.

    Raises:
      ValueError: A value is invalid. Nothing is changed then.

    Example:
      >>> import moxing as mox
      >>> mox.file.set_auth(retry=5, client_timeout=60)
      >>> mox.file.set_auth(port=0)
      Traceback (most recent call last):
      ...
      ValueError: port=0: expected an integer from 1 to 65535.
    """
    global _settings
    arguments = dict(locals())
    for name in ("negotiation", "obs_client_log"):
        _check(name, arguments.pop(name), lambda v: isinstance(v, bool), "True or False")
    _check("server", server, lambda v: isinstance(v, str) and bool(v.strip()), "a string")
    for name in ("ak", "sk"):
        # A key that was read from a file often ends in a line break.
        expected = "a string without spaces and line breaks"
        _check(name, arguments[name], lambda v: isinstance(v, str) and v.split() == [v], expected, secret=True)
    for name, low, high in (("port", 1, 65535), ("list_max_keys", 1, 1000), ("retry", 0, 1000)):
        expected = f"an integer from {low} to {high}"
        _check(name, arguments[name], lambda v, a=low, b=high: _is_integer(v) and a <= v <= b, expected)
    for name in ("is_secure", "ssl_verify", "long_conn_mode", "path_style"):
        _check(name, arguments[name], lambda v: isinstance(v, bool), "True or False")
    _check("retry_wait", retry_wait, lambda v: _is_number(v) and 0 <= v <= 3600, "seconds from 0 to 3600")
    _check("client_timeout", client_timeout, lambda v: _is_number(v) and 0 < v <= 86400, "seconds above 0")
    if server is not None:
        from moxing.framework.file.s3.endpoints import parse_server

        parse_server(server, port, is_secure, explicit=is_secure is not None)
    with _lock:
        merged = _settings.merge(**arguments)
        if (merged.ak is None) != (merged.sk is None):
            missing, present = ("sk", "ak") if merged.sk is None else ("ak", "sk")
            raise ValueError(f"{missing}: expected with {present}; set both.")
        _settings = merged


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check(name: str, value: Any, is_valid: Any, expected: str, secret: bool = False) -> None:
    if value is not None and not is_valid(value):
        # Never show a part of a key.
        shown = name if secret else f"{name}={value!r}"
        raise ValueError(f"{shown}: expected {expected}.")


def get_settings() -> Settings:
    """Returns what `set_auth` has set so far."""
    return _settings


def restore_settings(settings: Settings) -> None:
    """Replaces all settings, for example in a worker process."""
    global _settings
    _settings = settings

"""How a client reaches a store: endpoint, region, credentials and limits, from `set_auth` and the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from moxing.framework.file.auth import Settings
from moxing.framework.file.s3.credentials import (
    CHAIN_VARIABLES,
    KEY_VARIABLES,
    CredentialsProvider,
    Profile,
    find_credentials,
    has_botocore,
)
from moxing.framework.file.s3.endpoints import Endpoint, guess_region, parse_server

_AWS_SERVERS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_OBS_SERVERS = ("OBS_SERVER", "OBS_ENDPOINT")
_SERVERS = {
    "s3": ("S3_ENDPOINT", *_AWS_SERVERS, *_OBS_SERVERS),
    "obs": ("S3_ENDPOINT", *_OBS_SERVERS, *_AWS_SERVERS),
}
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION", "S3_REGION")
#: Every variable that matters: when one changes, a new client is created.
VARIABLES = (
    *(name for names in KEY_VARIABLES["s3"] for name in names),
    *_SERVERS["s3"],
    *_REGIONS,
    *CHAIN_VARIABLES,
    *("S3_USE_HTTPS", "S3_VERIFY_SSL"),
)


@dataclass(frozen=True)
class Access:
    """Everything that a client needs to know about its store."""

    endpoint: Endpoint
    region: str
    credentials: CredentialsProvider
    verify: bool = True
    keep_alive: bool = True
    path_style: bool | None = None
    retry: int = 5
    retry_wait: float = 0.2
    timeout: float = 60.0
    list_max_keys: int = 1000


def find_access(scheme: str, settings: Settings, environment: Mapping[str, str] | None = None) -> Access:
    """Returns how to reach the store of `s3://` or `obs://` URLs.

    Example:
      >>> env = {'S3_ENDPOINT': '127.0.0.1:9000', 'S3_USE_HTTPS': '0', 'ACCESS_KEY_ID': 'A', 'SECRET_ACCESS_KEY': 'S'}
      >>> access = find_access('s3', Settings(), env)
      >>> access.endpoint.host, access.endpoint.port, access.endpoint.secure
      ('127.0.0.1', 9000, False)
      >>> access.credentials
      Credentials(source='the environment variables ACCESS_KEY_ID and SECRET_ACCESS_KEY')
    """
    env = os.environ if environment is None else environment
    profile = Profile.find(env)
    region = _first(env, _REGIONS)
    server, server_source = _find_server(scheme, settings, env)
    # Only if something is missing without it: botocore, which reads profiles, takes a while to import.
    if profile.exists() and (profile.is_named or not server or not region):
        if profile.is_named or not (server or region):
            profile.check_readable("endpoint and region")
        found = profile.read() if has_botocore() else {}
        region = region or found.get("region")
        if not server:
            server, server_source = found.get("endpoint_url"), f"AWS profile {profile.name!r}: endpoint_url"
    if not server:
        if scheme != "s3":
            raise ValueError(
                f"{scheme}://: the address of the store is not known: call mox.file.set_auth(server='...') or set "
                "the environment variable OBS_SERVER or S3_ENDPOINT."
            )
        server = f"s3.{region or 'us-east-1'}.amazonaws.com"
    secure = settings.is_secure if settings.is_secure is not None else _flag(env, "S3_USE_HTTPS")
    endpoint = parse_server(
        server, settings.port, secure, explicit=settings.is_secure is not None, source=server_source
    )
    verify = settings.ssl_verify if settings.ssl_verify is not None else _flag(env, "S3_VERIFY_SSL")
    optional = {
        "path_style": settings.path_style,
        "keep_alive": settings.long_conn_mode,
        "retry": settings.retry,
        "retry_wait": settings.retry_wait,
        "timeout": settings.client_timeout,
        "list_max_keys": settings.list_max_keys,
        "verify": verify,
    }
    return Access(
        endpoint,
        region or guess_region(endpoint.host) or "us-east-1",
        find_credentials(scheme, (settings.ak, settings.sk), env, profile),
        **{name: value for name, value in optional.items() if value is not None},  # type: ignore[arg-type]
    )


def _find_server(scheme: str, settings: Settings, env: Mapping[str, str]) -> tuple[str | None, str]:
    """Returns the address and where it came from."""
    if settings.server:
        return settings.server, "server"
    name = next((name for name in _SERVERS[scheme] if env.get(name)), None)
    return (None, "") if name is None else (env[name], f"environment variable {name}")


def _first(env: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((env[name] for name in names if env.get(name)), None)


def _flag(env: Mapping[str, str], name: str) -> bool | None:
    value = env.get(name, "").strip().lower()
    if value in ("", "none"):
        return None
    if value in ("0", "false", "no", "off"):
        return False
    if value in ("1", "true", "yes", "on"):
        return True
    raise ValueError(f"environment variable {name}={env[name]!r}: expected 0 or 1.")

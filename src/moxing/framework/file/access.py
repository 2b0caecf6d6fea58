"""How an object store is reached: what `set_auth`, the environment and the AWS profiles say, put together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from moxing.framework.file.endpoints import Endpoint, guess_region, parse_server
from moxing.framework.file.responses import NO_CREDENTIALS

#: Pairs of variables, with the one of a session token; the scheme decides which cloud's own come first.
_MOXING_KEYS = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SECURITY_TOKEN")
_AWS_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_OBS_KEYS = ("OBS_ACCESS_KEY_ID", "OBS_SECRET_ACCESS_KEY", "OBS_SECURITY_TOKEN")
_KEYS = {"s3": (_MOXING_KEYS, _AWS_KEYS, _OBS_KEYS), "obs": (_MOXING_KEYS, _OBS_KEYS, _AWS_KEYS)}
_AWS_SERVERS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_OBS_SERVERS = ("OBS_SERVER", "OBS_ENDPOINT")
_SERVERS = {
    "s3": ("S3_ENDPOINT", *_AWS_SERVERS, *_OBS_SERVERS),
    "obs": ("S3_ENDPOINT", *_OBS_SERVERS, *_AWS_SERVERS),
}
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION", "S3_REGION")
_PROFILES = ("AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "HOME")
#: Every variable that is looked at: when one changes, the store is reached another way.
VARIABLES = tuple(
    dict.fromkeys(
        [
            *(name for names in _KEYS["s3"] for name in names),
            *_SERVERS["s3"],
            *_REGIONS,
            *_PROFILES,
            *("S3_USE_HTTPS", "S3_VERIFY_SSL"),
        ]
    )
)


@dataclass(frozen=True)
class Settings:
    """What `set_auth` was told; None where it was told nothing.

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

    def merge(self, **given: Any) -> Settings:
        """These settings with those that are given and not None in place of the old ones."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def to_dict(self) -> dict[str, Any]:
        """All of them, keys included, for the worker processes of a copy."""
        return asdict(self)

    def __repr__(self) -> str:
        shown = {k: v for k, v in asdict(self).items() if v is not None and k not in ("ak", "sk")}
        return f"Settings({', '.join(f'{k}={v!r}' for k, v in shown.items())})"


@dataclass(frozen=True)
class Credentials:
    """Keys, and where they came from, which errors may tell; the keys they may not. The same keys are equal.

    Example:
      >>> Credentials('AK', 'very secret', None, 'set_auth')
      Credentials(source='set_auth')
    """

    ak: str | None = field(repr=False)
    sk: str | None = field(repr=False)
    token: str | None = field(repr=False)
    source: str = field(compare=False)


@dataclass(frozen=True)
class Access:
    """Everything that a client needs to know about the store."""

    endpoint: Endpoint
    region: str
    credentials: Credentials
    verify: bool = True
    keep_alive: bool = True
    path_style: bool | None = None
    retry: int = 5
    retry_wait: float = 0.2
    timeout: float = 60.0
    list_max_keys: int = 1000


def find_access(scheme: str, settings: Settings, environment: Mapping[str, str] | None = None) -> Access:
    """The way to the store of `s3://` or `obs://` urls.

    Example:
      >>> access = find_access('s3', Settings(), {'S3_ENDPOINT': '127.0.0.1:9000', 'S3_USE_HTTPS': '0'})
      >>> access.endpoint.host, access.endpoint.port, access.endpoint.secure, access.credentials
      ('127.0.0.1', 9000, False, Credentials(source='no credentials'))
    """
    from moxing.framework.file.profiles import read_profile

    env = os.environ if environment is None else environment
    profile = read_profile(env)
    server, server_source = _find_server(scheme, settings, env, profile)
    region = _first(env, _REGIONS) or profile.get("region")
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
        _find_credentials(scheme, settings, env, profile),
        **{name: value for name, value in optional.items() if value is not None},  # type: ignore[arg-type]
    )


def _find_server(
    scheme: str, settings: Settings, env: Mapping[str, str], profile: Mapping[str, str]
) -> tuple[str | None, str]:
    """The address, and where it came from."""
    if settings.server:
        return settings.server, "server"
    for name in _SERVERS[scheme]:
        if env.get(name):
            return env[name], f"environment variable {name}"
    return profile.get("endpoint_url"), f"AWS profile {profile['name']!r}: endpoint_url"


def _find_credentials(
    scheme: str, settings: Settings, env: Mapping[str, str], profile: Mapping[str, str]
) -> Credentials:
    if settings.ak and settings.sk:
        return Credentials(settings.ak, settings.sk, None, "set_auth")
    half = ""
    for ak_name, sk_name, token_name in _KEYS[scheme]:
        ak, sk = env.get(ak_name), env.get(sk_name)
        if ak and sk:
            source = f"the environment variables {ak_name} and {sk_name}"
            return Credentials(ak, sk, env.get(token_name) or None, source)
        if (ak or sk) and not half:
            there, missing = (ak_name, sk_name) if ak else (sk_name, ak_name)
            half = f"the environment variable {there} is set, {missing} is not"
    ak, sk = profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")
    if ak and sk:
        return Credentials(ak, sk, profile.get("aws_session_token"), f"the AWS profile {profile['name']!r}")
    if (ak or sk) and not half:
        missing = "aws_secret_access_key" if ak else "aws_access_key_id"
        half = f"the AWS profile {profile['name']!r} has no {missing}"
    return Credentials(None, None, None, f"{NO_CREDENTIALS}: {half}" if half else NO_CREDENTIALS)


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

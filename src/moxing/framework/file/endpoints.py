"""The address of a store: host, port, http or https, and how a bucket is named in it."""

from __future__ import annotations

import re
from typing import NamedTuple

#: Clouds that want the bucket in the name of the host. Elsewhere it stands in the path, which every server understands.
_VIRTUAL_HOST_CLOUDS = ("amazonaws.com", "amazonaws.com.cn", "myhuaweicloud.com", "otc.t-systems.com", "aliyuncs.com")
_REGION = re.compile(
    r"^(?:s3|obs)[.-](?:dualstack\.)?([a-z]{2,}-[a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|myhuaweicloud\.com|otc\.t-systems\.com)$"
)
_BUCKET_IN_HOST = re.compile(r"^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$")


class Endpoint(NamedTuple):
    """Where a store listens."""

    host: str
    port: int
    secure: bool

    @property
    def scheme(self) -> str:
        """http or https."""
        return "https" if self.secure else "http"

    def host_header(self, host: str) -> str:
        """What stands behind `Host:`, which is signed: the port only where it is not the usual one."""
        name = f"[{host}]" if ":" in host else host
        return name if self.port == (443 if self.secure else 80) else f"{name}:{self.port}"


def parse_server(
    server: str, port: int | None, secure: bool | None, explicit: bool, source: str = "server"
) -> Endpoint:
    """The address in `server`: a host, host:port, or a url with http:// or https://.

    Args:
      server: The address.
      port: Its port, in place of one in `server`.
      secure: Whether to use https; by default what the url says, else https.
      explicit: Whether `secure` may contradict the url: `S3_USE_HTTPS` does not, an argument does.
      source: Where `server` came from, for errors.

    Example:
      >>> parse_server('http://127.0.0.1:9000', None, True, explicit=False)
      Endpoint(host='127.0.0.1', port=9000, secure=False)
      >>> parse_server('obs.cn-north-4.myhuaweicloud.com', None, None, explicit=False)
      Endpoint(host='obs.cn-north-4.myhuaweicloud.com', port=443, secure=True)
    """
    from urllib.parse import urlsplit

    if "@" in server:
        # Not shown: what stands before it may be a key, which may have slashes in it.
        raise ValueError(
            f"{source}: expected an address without user name and password; keys are arguments of set_auth."
        )
    try:
        parts = urlsplit(server if "://" in server else f"//{server}")
        own_port = parts.port
    except ValueError:
        own_port, parts = None, urlsplit("")
    if not parts.hostname or parts.scheme not in ("", "http", "https") or parts.path not in ("", "/") or parts.query:
        raise ValueError(f"{source}={server!r}: expected a host, host:port, or an address such as https://host:port.")
    if parts.scheme and not explicit:
        secure = parts.scheme == "https"
    secure = True if secure is None else secure
    return Endpoint(parts.hostname, port or own_port or (443 if secure else 80), secure)


def guess_region(host: str) -> str | None:
    """The region in the name of a cloud's endpoint.

    Example:
      >>> guess_region('obs.cn-north-4.myhuaweicloud.com'), guess_region('127.0.0.1')
      ('cn-north-4', None)
    """
    found = _REGION.match(host)
    return found.group(1) if found else None


def uses_path_style(host: str, bucket: str, secure: bool, path_style: bool | None) -> bool:
    """Whether the bucket stands in the path. A name that no host can have always does.

    Example:
      >>> uses_path_style('obs.cn-north-4.myhuaweicloud.com', 'data', True, None)
      False
      >>> uses_path_style('127.0.0.1', 'data', False, None)
      True
    """
    if path_style is not None:
        return path_style
    # A dot in the bucket: the certificate of a cloud is for one level of names.
    fits = _BUCKET_IN_HOST.match(bucket) is not None or (not secure and "." in bucket)
    return not fits or not any(host == cloud or host.endswith(f".{cloud}") for cloud in _VIRTUAL_HOST_CLOUDS)

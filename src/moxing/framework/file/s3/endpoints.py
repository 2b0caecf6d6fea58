"""The endpoint of a store: host, port, TLS, and whether the bucket is part of the host or of the path."""

from __future__ import annotations

import re
from typing import NamedTuple

#: Clouds that require virtual-hosted style, bucket.host. Elsewhere path style is used, which every server supports.
_VIRTUAL_HOST_CLOUDS = ("amazonaws.com", "amazonaws.com.cn", "myhuaweicloud.com", "otc.t-systems.com", "aliyuncs.com")
_REGION = re.compile(
    r"^(?:s3|obs)[.-](?:dualstack\.)?([a-z]{2,}-[a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|myhuaweicloud\.com|otc\.t-systems\.com)$"
)
_BUCKET_IN_HOST = re.compile(r"^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$")


class Endpoint(NamedTuple):
    """Host and port of a store, and whether it uses TLS."""

    host: str
    port: int
    secure: bool

    @property
    def scheme(self) -> str:
        """The URL scheme, http or https."""
        return "https" if self.secure else "http"

    def host_header(self, host: str) -> str:
        """Returns the value of the header Host, which is signed: with the port unless it is the default one."""
        name = f"[{host}]" if ":" in host else host
        return name if self.port == (443 if self.secure else 80) else f"{name}:{self.port}"


def parse_server(
    server: str, port: int | None, secure: bool | None, explicit: bool, source: str = "server"
) -> Endpoint:
    """Parses the address of a store: a host, host:port, or a URL with http:// or https://.

    Args:
      server: The address.
      port: The port; overrides the one in `server`.
      secure: Whether to use https. Default: the scheme of the URL, else https.
      explicit: Whether `secure` overrides the scheme of the URL: an argument does, `S3_USE_HTTPS` does not.
      source: Where `server` came from, for error messages.

    Example:
      >>> parse_server('http://127.0.0.1:9000', None, True, explicit=False)
      Endpoint(host='127.0.0.1', port=9000, secure=False)
      >>> parse_server('obs.cn-north-4.myhuaweicloud.com', None, None, explicit=False)
      Endpoint(host='obs.cn-north-4.myhuaweicloud.com', port=443, secure=True)
    """
    from urllib.parse import urlsplit

    if "@" in server:
        # Do not show the value: the part before the @ may be a key.
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
    """Returns the region in the host name of a cloud, None if it has none.

    Example:
      >>> guess_region('obs.cn-north-4.myhuaweicloud.com'), guess_region('127.0.0.1')
      ('cn-north-4', None)
    """
    found = _REGION.match(host)
    return found.group(1) if found else None


def uses_path_style(host: str, bucket: str, secure: bool, path_style: bool | None) -> bool:
    """Returns whether to use path style. A bucket whose name is not a valid host name always needs it.

    Example:
      >>> uses_path_style('obs.cn-north-4.myhuaweicloud.com', 'data', True, None)
      False
      >>> uses_path_style('127.0.0.1', 'data', False, None)
      True
    """
    if path_style is not None:
        return path_style
    # A bucket with a dot: the certificate of a cloud covers one level of names only.
    fits = _BUCKET_IN_HOST.match(bucket) is not None or (not secure and "." in bucket)
    return not fits or not any(host == cloud or host.endswith(f".{cloud}") for cloud in _VIRTUAL_HOST_CLOUDS)

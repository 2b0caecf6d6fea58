"""Proxies in the environment, which gRPC uses even between the processes of a job."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from urllib.parse import urlsplit

from moxing.tensorflow.cluster.roles import split_address

#: The variables in which gRPC looks for a proxy, and for hosts without one. The first that is set counts.
_GRPC_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
_GRPC_EXCEPTIONS = ("no_grpc_proxy", "no_proxy")
#: The variables of other programs too.
_PROXIES = (*_GRPC_PROXIES, "all_proxy", "GRPC_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")


def proxy_problems(addresses: Iterable[str]) -> list[str]:
    """Returns a message if gRPC would connect to one of the addresses through a proxy.

    Example:
      >>> os.environ["grpc_proxy"] = "http://proxy:3128"
      >>> proxy_problems(["10.0.0.2:2222"])[0]
      'A proxy in the environment: grpc_proxy (proxy) is used for 10.0.0.2; unset it, or add 10.0.0.2 to no_proxy.'
      >>> del os.environ["grpc_proxy"]
    """
    exceptions = _first_set(*_GRPC_EXCEPTIONS)
    hosts = [host for host in _hosts(addresses) if not _is_exception(host, exceptions)]
    name = next((name for name in _GRPC_PROXIES if os.environ.get(name)), None)
    if not hosts or name is None:
        return []
    # Only the host: the value may contain a password.
    proxy = urlsplit(os.environ[name]).hostname or "a proxy"
    return [
        f"A proxy in the environment: {name} ({proxy}) is used for {', '.join(hosts)}; "
        f"unset it, or add {','.join(hosts)} to no_proxy."
    ]


def _hosts(addresses: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(split_address(address)[0] for address in addresses))


def bypass_proxies(addresses: Iterable[str]) -> dict[str, str]:
    """Sets environment variables so that gRPC connects to these addresses without a proxy.

    Args:
      addresses: host:port of all processes of the job.

    Returns:
      The variables that it set and their values; none if the environment has no proxy.

    Example:
      >>> os.environ["https_proxy"] = "http://proxy:3128"
      >>> bypass_proxies(["10.0.0.2:2222"])
      {'no_grpc_proxy': '10.0.0.2', 'no_proxy': '10.0.0.2', 'NO_PROXY': '10.0.0.2'}
      >>> for name in ("https_proxy", "no_grpc_proxy", "no_proxy", "NO_PROXY"):
      ...     del os.environ[name]
    """
    if not any(os.environ.get(name) for name in _PROXIES):
        return {}
    hosts = _hosts(addresses)
    # A variable that is not set yet starts with the value of the one that was used in its place.
    before = {
        "no_grpc_proxy": _first_set("no_grpc_proxy", "no_proxy", "NO_PROXY"),
        "no_proxy": _first_set("no_proxy", "NO_PROXY"),
        "NO_PROXY": _first_set("NO_PROXY", "no_proxy"),
    }
    changed = {}
    for name, exceptions in before.items():
        missing = [host for host in hosts if not _is_exception(host, exceptions)]
        after = ",".join([*([exceptions] if exceptions else []), *missing])
        if after != os.environ.get(name, ""):
            changed[name] = after
    os.environ.update(changed)
    return changed


def _first_set(*names: str) -> str:
    return next((value for name in names if (value := os.environ.get(name, "").strip().strip(","))), "")


def _is_exception(host: str, exceptions: str) -> bool:
    """Whether gRPC finds `host` in a no_proxy list: it compares suffixes of names and networks; it ignores `*`."""
    for entry in (entry.strip().lower() for entry in exceptions.split(",")):
        if entry and host.lower().endswith(entry):
            return True
        try:
            if "/" in entry and ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False):
                return True
        except ValueError:  # a name is in no network
            continue
    return False

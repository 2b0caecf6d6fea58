"""Comparing the host lists of two processes of a job."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence

from moxing.tensorflow.cluster.peers import Target
from moxing.tensorflow.cluster.roles import CHIEF, split_address

#: The addresses of every job, as in `Role.spec`.
HostLists = Mapping[str, Sequence[str]]

ADVICE = "All processes of a job need the same lists, in the same order."
#: How many entries of a list, and how many differences, a message shows.
_MAX_SHOWN = 6


def host_list_difference(chiefs: HostLists, others: HostLists, name: str) -> str | None:
    """Returns how the host lists of the chief and of the process `name` differ; None if they mean the same.

    Args:
      chiefs: the host lists of the chief.
      others: the host lists of the other process.
      name: the name of the other process.

    Example:
      >>> print(host_list_difference({"worker": ["a:1", "b:1"]}, {"worker": ["a:1", "b:1", "c:1"]}, "worker 1"))
      worker 0 and worker 1 were started with different host lists. worker 0 has 2 workers (a:1,b:1), worker 1 has 3 \
workers (a:1,b:1,c:1): worker 2 is missing for worker 0 and c:1 for worker 1. All processes of a job need the same \
lists, in the same order.
    """
    left, right = _members(chiefs), _members(others)
    names = [
        member
        for member in {**left, **right}
        if not _is_same_process(left.get(member), right.get(member), member, name)
    ]
    if not names:
        return None
    jobs = dict.fromkeys(member.split()[0] for member in names)
    lists = [f"{CHIEF} has {describe(job, chiefs)}, {name} has {describe(job, others)}" for job in jobs]
    entries = [
        f"{member} is {left.get(member, 'missing')} for {CHIEF} and {right.get(member, 'missing')} for {name}"
        for member in names[:_MAX_SHOWN]
    ]
    more = f", and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
    return (
        f"{CHIEF} and {name} were started with different host lists. {'; '.join(lists)}: {', '.join(entries)}{more}. "
        f"{ADVICE}"
    )


def describe(job: str, lists: HostLists) -> str:
    """The number of processes of a job and their addresses, shortened.

    Example:
      >>> describe("worker", {"worker": ["a:1", "b:1"]})
      '2 workers (a:1,b:1)'
    """
    hosts = list(lists.get(job, []))
    shown = ",".join([*hosts[:_MAX_SHOWN], *(["..."] if len(hosts) > _MAX_SHOWN else [])])
    plural = "s" if job == "worker" and len(hosts) != 1 else ""
    return f"{len(hosts)} {job}{plural} ({shown})" if hosts else f"no {job}"


def _members(lists: HostLists) -> dict[str, str]:
    return {f"{job} {index}": address for job, hosts in lists.items() for index, address in enumerate(hosts)}


def _is_same_process(chiefs: str | None, others: str | None, member: str, name: str) -> bool:
    """Whether two addresses mean one process: a host name equals its address, and every process may use localhost."""
    if chiefs is None or others is None or chiefs == others:
        return chiefs == others
    (host, port), (other_host, other_port) = split_address(chiefs), split_address(others)
    if port != other_port:
        return False
    if (member == CHIEF and _is_local(host)) or (member == name and _is_local(other_host)):
        return True
    addresses, other_addresses = ({address[0] for _, address in Target(text).endpoints()} for text in (chiefs, others))
    return bool(addresses & other_addresses)


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified

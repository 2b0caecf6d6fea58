"""`mox.get_flag` and `mox.set_flag`."""

from __future__ import annotations

from typing import Any

from moxing.framework.flags import FLAGS
from moxing.tensorflow.cluster import current_role

#: Flags that tell this process its role.
_ROLE_FLAGS = ("worker_hosts", "ps_hosts", "task_index", "job_name")


def get_flag(name: str | None = None, *, flag_name: str | None = None) -> Any:
    """The value of one of MoXing's command-line flags.

    Args:
      name: name of the flag.
      flag_name: the same; the manual uses both.

    Example:
      >>> get_flag('num_gpus')
      1
    """
    chosen = _one_name("get_flag", name, flag_name)
    value = FLAGS.get(chosen)
    return _from_role(chosen) if chosen in _ROLE_FLAGS and not value else value


def _from_role(name: str) -> Any:
    """The value that a scheduler gives where the command line has none: scripts compute with these flags."""
    role = current_role()
    hosts = {"worker_hosts": role.workers, "ps_hosts": role.ps}
    if name in hosts:
        return ",".join(hosts[name])
    return role.index if name == "task_index" else role.job if role.is_cluster else ""


def set_flag(name: str | None = None, value: Any = None, *, flag_name: str | None = None) -> None:
    """Sets one of MoXing's flags. Call it before `mox.run`, outside the callbacks.

    Args:
      name: name of the flag.
      value: the new value.
      flag_name: the same as `name`.

    Example:
      >>> set_flag('loss_scale', 128)
      >>> get_flag('loss_scale')
      128.0
      >>> set_flag('loss_scale', 1)
    """
    FLAGS.set(_one_name("set_flag", name, flag_name), value)


def _one_name(function: str, name: str | None, flag_name: str | None) -> str:
    chosen = name if name is not None else flag_name
    if chosen is None:
        raise TypeError(f"mox.{function}() needs the name of a flag.")
    return chosen

"""The cluster environments: what can define the role of this process.

A new environment is one file with a decorated function, and one import of it in `environments/__init__.py`. A script
can register environments of its own in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from moxing.tensorflow.cluster.roles import Role, check_role

#: Returns the role of this process, or None outside of the environment.
Detect = Callable[[], Role | None]


class _Environment(NamedTuple):
    priority: int
    detect: Detect
    variable: str | None


_environments: dict[str, _Environment] = {}


def register_environment(name: str, priority: int = 100, variable: str | None = None) -> Callable[[Detect], Detect]:
    """Registers a function that detects the role of this process in an environment.

    Args:
      name: name of the environment. Registering a name again replaces its function.
      priority: the order of detection, highest first. The built-in ones: flags 1000, tf_config 20, slurm 10.
      variable: an environment variable that is always set in this environment. Where it is not, the function is not
        called.

    Example:
      >>> @register_environment("my_scheduler")
      ... def detect():
      ...     return None  # not started by this scheduler
      >>> environment_names()
      ['flags', 'my_scheduler', 'tf_config', 'slurm']
      >>> unregister_environment("my_scheduler")
    """

    def register(detect: Detect) -> Detect:
        _environments[name] = _Environment(priority, detect, variable)
        return detect

    return register


def unregister_environment(name: str) -> None:
    """Removes an environment."""
    del _environments[name]


def environment_names() -> list[str]:
    """The registered environments, in the order in which `current_role` tries them."""
    return sorted(_environments, key=lambda name: -_environments[name].priority)


def current_role() -> Role:
    """Returns the role of this process: that of the first environment that defines one, else a process that runs alone.

    Raises:
      RoleError: the flags or the environment contradict themselves, or an environment returned something else than a
        valid role.

    Example:
      >>> current_role()
      Role(job='worker', index=0, workers=(), ps=(), controller=None, origin='', chief_job='worker')
    """
    for name in environment_names():
        environment = _environments[name]
        if environment.variable is not None and environment.variable not in os.environ:
            continue
        role = environment.detect()
        if role is not None:
            return check_role(name, role)
    return Role()

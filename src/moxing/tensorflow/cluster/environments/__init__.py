"""Cluster environments: the flags and the schedulers that define the role of a process.

One environment a file, each with a function `detect()` that `register_environment` registers; it returns a `Role`, or
None outside of its environment. `current_role()` asks them in the order of their priority. Importing this package
registers the built-in ones. How to write one: `docs/extending.md`.
"""

from moxing.tensorflow.cluster.environments import flags, slurm, tf_config
from moxing.tensorflow.cluster.environments.registry import current_role, register_environment

__all__ = ["current_role", "flags", "register_environment", "slurm", "tf_config"]

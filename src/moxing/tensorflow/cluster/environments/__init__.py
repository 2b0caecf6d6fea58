"""Where a scheduler has already said who is who: one environment a file, each with `detect()`."""

from moxing.tensorflow.cluster.environments import slurm, tf_config
from moxing.tensorflow.cluster.roles import Role

__all__ = ["detect", "slurm", "tf_config"]


def detect() -> Role | None:
    """The role that the first environment found gives to this process, None outside of all of them.

    Example:
      >>> detect() is None
      True
    """
    # Somebody wrote TF_CONFIG for this very program, while Slurm's variables are there for any.
    return tf_config.detect() or slurm.detect()

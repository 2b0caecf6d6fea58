"""Who this process is and who the others are."""

from moxing.tensorflow.cluster.roles import require_one_device

__all__ = ["require_one_device"]

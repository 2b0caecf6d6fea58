"""Who this process is and who the others are."""

from moxing.tensorflow.cluster.roles import Role, current_role

__all__ = ["Role", "current_role"]

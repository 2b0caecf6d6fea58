"""MoXing's flag registry at its original path: `from moxing.tensorflow.utils.hyper_param_flags import mox_flags`."""

from moxing.framework.flags import FLAGS as mox_flags
from moxing.framework.flags import FlagError


def get_help() -> str:
    """Returns the help text of all flags.

    Example:
      >>> '--num_gpus' in get_help()
      True
    """
    return mox_flags.get_help()


__all__ = ["FlagError", "get_help", "mox_flags"]

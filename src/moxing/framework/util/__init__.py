"""Small helpers without TensorFlow.

Scripts import `compat` and `runtime` from here, as in the original. The other modules are for MoXing itself: checks of
names and numbers, learning-rate strategies, network interfaces, temporary directories.
"""

from moxing.framework.util import compat, runtime

__all__ = ["compat", "runtime"]

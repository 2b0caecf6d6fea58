"""MoXing: a training framework for TensorFlow 1 code, on today's TensorFlow.

`import moxing as mox` gives `mox.file` and imports no TensorFlow; `import moxing.tensorflow as mox` gives the trainer.
"""

from moxing._version import __version__
from moxing.framework import file
from moxing.framework.cache import cache

__all__ = ["__version__", "cache", "file"]

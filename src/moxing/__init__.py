"""MoXing: a training framework for TensorFlow 1 code, on TensorFlow 2.

`import moxing as mox` provides `mox.file` and imports no TensorFlow. `import moxing.tensorflow as mox` provides
`mox.run` and everything else.
"""

from moxing._version import __version__
from moxing.framework import file
from moxing.framework.cache import cache

__all__ = ["__version__", "cache", "file"]

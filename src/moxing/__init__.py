"""MoXing: a training framework for TensorFlow 1 code, on today's TensorFlow.

`import moxing as mox` gives `mox.file` and imports no TensorFlow; `import moxing.tensorflow as mox` gives the trainer.
"""

from moxing._version import __version__
from moxing.framework import file

__all__ = ["__version__", "file"]

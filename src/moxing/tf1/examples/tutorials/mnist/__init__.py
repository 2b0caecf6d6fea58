"""`tensorflow.examples.tutorials.mnist` for user code: `input_data` reads the four IDX files of MNIST.

`idx` parses the files, `dataset` returns batches, `input_data` has the functions of the tutorial.
"""

from moxing.tf1.examples.tutorials.mnist import input_data

__all__ = ["input_data"]

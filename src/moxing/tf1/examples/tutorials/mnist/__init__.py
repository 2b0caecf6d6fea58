"""`tensorflow.examples.tutorials.mnist` for user code: the reader of the four IDX files."""

from moxing.tf1.examples.tutorials.mnist import input_data

__all__ = ["input_data"]

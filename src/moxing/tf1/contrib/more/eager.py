"""What `tf.contrib.eager` had besides the functions that are in TensorFlow today."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tf1.contrib import _lazy

__all__ = [
    "Iterator",
    "Saver",
    "defun",
    "in_eager_mode",
    "in_graph_mode",
    "num_gpus",
]

DEVICE_PLACEMENT_EXPLICIT = 0
DEVICE_PLACEMENT_WARN = 1
DEVICE_PLACEMENT_SILENT = 2

# The metrics of Keras have the methods that those of tfe had: a call updates, result() is the value.
_NAMES = {"metrics": "tf_keras.api._v1.keras.metrics:"}
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)


class Iterator:
    """Reads a dataset in eager execution.

    Args:
      dataset: a `tf.data.Dataset`.
    """

    def __init__(self, dataset: Any) -> None:
        if not tf.executing_eagerly():
            raise RuntimeError(
                "tfe.Iterator needs eager execution: call tf.enable_eager_execution() at the start of the program, or "
                "use dataset.make_one_shot_iterator()."
            )
        self._iterator = iter(dataset)

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        return next(self._iterator)

    def next(self) -> Any:
        """Returns the next element."""
        return next(self._iterator)


class Saver:
    """Saves and restores a list of variables in eager execution.

    Args:
      var_list: the variables.
    """

    def __init__(self, var_list: Any) -> None:
        self._saver = tf.train.Saver(var_list)

    def save(self, file_prefix: str, global_step: Any = None) -> str:
        """Writes the variables and returns the path."""
        return self._saver.save(None, file_prefix, global_step=global_step)

    def restore(self, file_prefix: str) -> None:
        """Reads the variables."""
        self._saver.restore(None, file_prefix)


def defun(func: Any = None, input_signature: Any = None, autograph: bool = True) -> Any:
    """Returns `tf.function` of a function.

    Example:
      >>> defun(lambda x: x + 1, autograph=False).__class__.__name__
      'Function'
    """
    return tf.function(func, input_signature=input_signature, autograph=autograph)


def in_eager_mode() -> bool:
    """Returns True in eager execution."""
    return tf.executing_eagerly()


def in_graph_mode() -> bool:
    """Returns True in graph mode."""
    return not tf.executing_eagerly()


def num_gpus() -> int:
    """Returns the number of GPUs.

    Example:
      >>> num_gpus() >= 0
      True
    """
    return len(tf.config.list_logical_devices("GPU"))

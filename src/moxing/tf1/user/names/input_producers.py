"""The names of `tf.train` that user modules see replaced.

`tf.train.string_input_producer` also takes the variable of `tf.train.match_filenames_once`.
"""

from __future__ import annotations

import functools
from typing import Any

from moxing.tf1 import environment

__all__ = ["SummaryWriter", "string_input_producer"]

tf = environment.import_tensorflow()

#: The name in TensorFlow 0.x.
SummaryWriter = tf.compat.v1.summary.FileWriter


@functools.wraps(tf.compat.v1.train.string_input_producer)
def string_input_producer(string_tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns a queue of strings, such as file names.

    TensorFlow asks whether the names are empty, which a resource variable refuses to answer in a graph.
    """
    if isinstance(string_tensor, tf.Variable):
        string_tensor = string_tensor.read_value()
    return tf.compat.v1.train.string_input_producer(string_tensor, *args, **kwargs)

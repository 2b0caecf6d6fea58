"""`tensorflow.examples.tutorials.mnist` for user code: `input_data` reads the four IDX files of MNIST.

`idx` parses the files, `dataset` returns batches, `input_data` has the functions of the tutorial, `mnist` its network.
"""

from __future__ import annotations

import importlib
from typing import Any

from moxing.tf1.examples.tutorials.mnist import input_data

__all__ = ["input_data", "mnist"]


def __getattr__(name: str) -> Any:
    if name != "mnist":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Imported on first use: it imports TensorFlow.
    return importlib.import_module(f"{__name__}.mnist")

"""The version of TensorFlow."""

from __future__ import annotations

import tensorflow as tf


def version_info() -> tuple[int, int, int]:
    """Returns the version of TensorFlow as numbers.

    Example:
      >>> version_info() >= (2, 21, 0)
      True
    """
    major, minor, patch = tf.__version__.split("-")[0].split(".")[:3]
    return int(major), int(minor), int("".join(filter(str.isdigit, patch)) or 0)

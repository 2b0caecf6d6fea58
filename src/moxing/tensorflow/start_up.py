"""Sets the log levels and prints the versions when `moxing.tensorflow` is imported."""

from __future__ import annotations

import logging
import os

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError
from moxing.tf1 import environment
from moxing.tf1.graph import v1_behavior

_LEVELS = {0: logging.ERROR, 1: logging.WARNING, 2: logging.INFO, 3: logging.DEBUG}


def announce(version: str) -> None:
    """Sets the log levels, and logs the versions unless `MOX_SILENT_MODE=1` is set.

    Args:
      version: the version of MoXing.
    """
    level = _LEVELS.get(FLAGS.get("running_log_level"))
    if level is None:
        raise FlagError(f"--running_log_level={FLAGS.get('running_log_level')}: expected 0, 1, 2 or 3.")
    v1_behavior.ignore_deprecation_warnings()
    root = logging.getLogger()
    if not root.handlers:
        logging.basicConfig(format=logging.BASIC_FORMAT)
    root.setLevel(level)
    tf.logging.set_verbosity(level)
    logger = logging.getLogger("tensorflow")
    # If TensorFlow's logger was used before, it has its own handler, and every line would be printed twice.
    logger.propagate = not logger.handlers
    if os.environ.get("MOX_SILENT_MODE") == "1":
        return
    root.info("Using MoXing-v%s", version)
    tf.logging.info("Using TensorFlow-%s", tf.__version__)
    missed = environment.missed_switches()
    if missed:
        tf.logging.warning(
            "TensorFlow was imported before moxing, without %s: tf.keras is Keras 3, which does not work in graphs of "
            "TensorFlow 1 (batch-norm averages are not updated), and training is slower. "
            "Import moxing.tensorflow first, or start the script with `moxing run`.",
            " ".join(missed),
        )

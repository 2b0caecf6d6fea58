"""What `import moxing.tensorflow` does to logging, and the lines it prints."""

from __future__ import annotations

import logging
import os

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tf1 import environment, graph_mode

_LEVELS = {0: logging.ERROR, 1: logging.WARNING, 2: logging.INFO, 3: logging.DEBUG}


def announce(version: str) -> None:
    """Sets the log levels and names the versions, unless `MOX_SILENT_MODE=1` asks for silence.

    Args:
      version: MoXing's own.
    """
    level = _LEVELS.get(FLAGS.get("running_log_level"))
    if level is None:
        raise ValueError(f"--running_log_level={FLAGS.get('running_log_level')}: expected 0, 1, 2 or 3.")
    graph_mode.ignore_age_warnings()
    root = logging.getLogger()
    if not root.handlers:
        logging.basicConfig(format=logging.BASIC_FORMAT)
    root.setLevel(level)
    tf.logging.set_verbosity(level)
    logger = logging.getLogger("tensorflow")
    # TensorFlow's logger has a handler of its own when it was used before: one line is enough.
    logger.propagate = not logger.handlers
    if os.environ.get("MOX_SILENT_MODE") == "1":
        return
    root.info("Using MoXing-v%s", version)
    tf.logging.info("Using TensorFlow-%s", tf.__version__)
    missed = environment.missed_switches()
    if missed:
        tf.logging.warning(
            "TensorFlow was imported before moxing, without %s: tf.keras is Keras 3, which does not work in graphs of "
            "TensorFlow 1 (batch-norm averages do not move), and some speed is missing. "
            "Import moxing.tensorflow first, or start the script with `moxing run`.",
            " ".join(missed),
        )

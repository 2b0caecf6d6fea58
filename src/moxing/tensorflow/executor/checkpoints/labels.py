"""`labels.txt` next to the checkpoints: the class names that a model was trained on."""

from __future__ import annotations

import os
from collections.abc import Mapping

import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.raw.labels import read_label_map
from moxing.tensorflow.executor.checkpoints.choose import ChosenCheckpoint
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.specs import ModeKeys


def labels_path(directory: str) -> str:
    """Path of the class names of the checkpoints in `directory`.

    Example:
      >>> labels_path('log')
      'log/labels.txt'
    """
    return os.path.join(directory, "labels.txt")


def saved_labels(directory: str) -> dict[int, str] | None:
    """The class names of the checkpoints in a directory; None if they are missing or cannot be read."""
    path = labels_path(directory)
    if not os.path.exists(path):
        return None
    try:
        return read_label_map(path)
    except (ValueError, OSError) as error:
        tf.logging.warning("Cannot read %s: %s", path, error)
        return None


def check_labels(config: RunConfig, checkpoint: ChosenCheckpoint | None, labels: Mapping[int, str] | None) -> None:
    """Compares the classes of the data with those that the checkpoint was trained on.

    A difference is an error when a training is resumed, and a warning in EVAL and PREDICT, where a model may be tried
    on other data.

    Args:
      config: the run.
      checkpoint: the checkpoint that the run starts from.
      labels: class names of the data; None if it has none.
    """
    if checkpoint is None or labels is None:
        return
    training = config.mode is ModeKeys.TRAIN
    if training and not checkpoint.resume:
        return  # a warm start may have other classes
    directory = os.path.dirname(checkpoint.prefix)
    trained = saved_labels(directory)
    if trained is None or trained == dict(labels):
        return
    number = next(index for index in sorted({*trained, *labels}) if trained.get(index) != labels.get(index))
    message = (
        f"The classes of the data are not those that the checkpoint {checkpoint.prefix} was trained on: class "
        f"{number} is {labels.get(number)!r} in the data and {trained.get(number)!r} in {labels_path(directory)}. "
        "Copy that labels.txt into the data's directory"
    )
    if training:
        raise ValueError(f"{message}, or train in another log_dir.")
    tf.logging.warning("%s, unless this is intended.", message)

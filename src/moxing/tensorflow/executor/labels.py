"""The names of the classes, kept beside the checkpoints: a model is of no use to who does not know its order."""

from __future__ import annotations

import os
from collections.abc import Mapping

import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.raw.labels import read_label_map
from moxing.tensorflow.executor import checkpoint
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.specs import ModeKeys


def labels_path(directory: str) -> str:
    """Where the class names of the checkpoints in `directory` stand.

    Example:
      >>> labels_path('log')
      'log/labels.txt'
    """
    return os.path.join(directory, "labels.txt")


def saved_labels(directory: str) -> dict[int, str] | None:
    """The class names beside the checkpoints of a directory, or None."""
    path = labels_path(directory)
    if not os.path.exists(path):
        return None
    try:
        return read_label_map(path)
    except (ValueError, OSError) as error:
        tf.logging.warning("%s cannot be read: %s", path, error)
        return None


def check_labels(config: RunConfig, source: checkpoint.Source | None, labels: Mapping[int, str] | None) -> None:
    """Compares the classes of the data with those that the checkpoint was trained on.

    Going on with training is an error; evaluating is only warned of, since a model may be tried on other data.
    """
    if source is None or labels is None:
        return
    training = config.mode is ModeKeys.TRAIN
    if training and not source.resume:
        return  # a warm start may well have other classes
    directory = os.path.dirname(source.prefix)
    trained = saved_labels(directory)
    if trained is None or trained == dict(labels):
        return
    number = next(index for index in sorted({*trained, *labels}) if trained.get(index) != labels.get(index))
    message = (
        f"The classes of the data are not those that the checkpoint {source.prefix} was trained on: class {number} is "
        f"{labels.get(number)!r} here and {trained.get(number)!r} in {labels_path(directory)}. Copy that labels.txt "
        "into the data's directory"
    )
    if training:
        raise ValueError(f"{message}, or train in another log_dir.")
    tf.logging.warning("%s, unless this is meant.", message)

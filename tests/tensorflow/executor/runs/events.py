"""Reading event files back."""

from __future__ import annotations

import tensorflow.compat.v1 as tf


def scalars(directory) -> dict[str, dict[int, float]]:
    """The scalars of a directory, by tag and step."""
    found: dict[str, dict[int, float]] = {}
    for path in sorted(directory.glob("events*")):
        for event in tf.train.summary_iterator(str(path)):
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    found.setdefault(value.tag, {})[event.step] = value.simple_value
    return found

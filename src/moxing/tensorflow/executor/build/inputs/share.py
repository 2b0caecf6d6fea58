"""How towers and workers share the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf


@dataclass(frozen=True)
class Share:
    """The part of the data that this process reads.

    Attributes:
      towers: batches per step of this process, one for each tower.
      workers: number of processes that share the data.
      index: index of this process among them.
      in_step: all workers do the same number of steps. A worker that runs out of data continues with padding batches.
    """

    towers: int = 1
    workers: int = 1
    index: int = 0
    in_step: bool = False

    def part_of(self, count: Any) -> Any:
        """How many of the first `count` elements this worker reads; `count` is a number or a tensor.

        Example:
          >>> [Share(workers=3, index=index).part_of(8) for index in range(3)]
          [3, 3, 2]
        """
        return (count - self.index + self.workers - 1) // self.workers


EVERYTHING = Share()


def with_padding_batches(dataset: tf.data.Dataset, padding: tf.data.Dataset, count: int | None) -> tf.data.Dataset:
    """Adds a last component to each element: 1 for data, 0 for the padding after it.

    A step takes a whole number of batches. Padding completes the last step, and the 0 gives it no weight.

    Args:
      dataset: the data.
      padding: its first element is the padding.
      count: how many times to append the padding; None repeats it without end.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     numbers = tf.data.Dataset.range(3)
      ...     element = tf.data.make_one_shot_iterator(with_padding_batches(numbers, numbers, 2)).get_next()
      ...     print([tuple(int(part) for part in session.run(element)) for _ in range(5)])
      [(0, 1), (1, 1), (2, 1), (0, 0), (0, 0)]
    """

    def marked(dataset: tf.data.Dataset, mark: int) -> tf.data.Dataset:
        return dataset.map(lambda *element: (*element, np.int64(mark)))

    return marked(dataset, 1).concatenate(marked(padding.take(1), 0).repeat(count))

"""Shares the steps up to `max_steps` among the workers of an asynchronous job.

Every worker does many steps per call. If each went on to the target by itself, the job would do too many. So a worker
first claims steps: the steps in flight of all workers are one number, in a queue of one element on a parameter server.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

_DEVICE = "/job:ps/task:0"
_POLL_SECONDS = 0.02


class StepBudget:
    """The steps that this process may do now. A process has one, which may hold steps from one training to the next.

    Attributes:
      workers: how many workers share the steps.
    """

    def __init__(self) -> None:
        self.workers = 1
        self._held = 0
        self._claim: Any = None

    @staticmethod
    def open(target: str) -> None:
        """Lets the workers begin to claim steps. The chief calls it once in a job.

        Args:
          target: the server of the chief.
        """
        with tf.Graph().as_default(), tf.device(_DEVICE):
            nothing = _queue().enqueue([tf.constant(0, tf.int64)])
            with tf.Session(target, config=tf.ConfigProto(device_filters=[_DEVICE])) as session:
                session.run(nothing)

    def build(self, global_step: tf.Variable) -> None:
        """Adds the operations to the graph of a training."""
        with tf.device(_DEVICE), tf.name_scope("moxing_steps"):
            self._feeds = [tf.placeholder(tf.int64, [], name) for name in ("returned", "wanted", "last")]
            returned, wanted, last = self._feeds
            queue = _queue()
            # While this process has the element, no other can claim steps.
            others = queue.dequeue() - returned
            with tf.control_dependencies([others]):
                now = tf.cast(global_step.read_value(), tf.int64)
            # A step in flight may be in `now` already. That is counted twice until its worker returns it.
            claimed = tf.maximum(tf.minimum(last - now - others, wanted), 0)
            with tf.control_dependencies([queue.enqueue([others + claimed])]):
                self._claim = [tf.identity(claimed), tf.identity(now)]

    def claim(self, run: Callable[[Any, dict[Any, Any]], Any], wanted: int, last: int) -> int:
        """Returns how many steps this worker may do now, at least 1. Waits while others do the last ones.

        Args:
          run: runs fetches with a feed in the open session.
          wanted: the most that are of use.
          last: the step at which the training ends.

        Raises:
          OutOfRangeError: the training has reached `last`.
        """
        while True:
            steps, now = self._exchange(run, wanted, last)
            if steps:
                return steps
            if now >= last:
                raise tf.errors.OutOfRangeError(None, None, f"The job has reached step {last}.")
            time.sleep(_POLL_SECONDS)

    def give_back(self, run: Callable[[Any, dict[Any, Any]], Any]) -> None:
        """Returns the steps that this worker holds, whether it has done them or not."""
        if self._held:
            self._exchange(run, 0, 0)

    def _exchange(self, run: Callable[[Any, dict[Any, Any]], Any], wanted: int, last: int) -> tuple[int, int]:
        feed = dict(zip(self._feeds, (self._held, wanted, last), strict=True))
        claimed, now = run(self._claim, feed)
        self._held = int(claimed)
        return self._held, int(now)


def _queue() -> tf.FIFOQueue:
    return tf.FIFOQueue(1, [tf.int64], [[]], shared_name="moxing/steps_in_flight")

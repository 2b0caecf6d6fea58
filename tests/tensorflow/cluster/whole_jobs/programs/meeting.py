"""Asynchronous workers that wait for each other after their first step."""

from __future__ import annotations

import os
import time

import moxing.tensorflow as mox

# isort: split
import tensorflow.compat.v1 as tf


class FirstStepsTogether(tf.train.SessionRunHook):
    """Without it, the first worker could do all steps before the others have begun."""

    def __init__(self) -> None:
        self._met = False

    def after_run(self, context, values):
        if self._met:
            return
        self._met = True
        open(f"met-{mox.get_flag('task_index')}", "w").close()
        workers = len(mox.get_flag("worker_hosts").split(","))
        while not all(os.path.exists(f"met-{worker}") for worker in range(workers)):
            time.sleep(0.01)

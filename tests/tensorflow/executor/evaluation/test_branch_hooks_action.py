"""Hooks of the user on the model in inter_mode."""

from __future__ import annotations

import tensorflow.compat.v1 as tf
from evaluation_runs import run

import moxing.tensorflow as mox


class Inter(mox.AggregativeSessionRunHook):
    """Looks at the batches of inter_mode, one with every step."""

    def __init__(self, batch, seen):
        self._sum, self._seen = tf.reduce_sum(batch), seen

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._sum)

    def after_run(self, run_context, run_values):
        self._seen.append(float(run_values.results))
        if len(self._seen) == 5:
            run_context.request_stop()

    def support_aggregation(self):
        return False

    def support_sync_workers(self):
        return False

    def run_inter_mode(self):
        return True


def test_hook_of_the_user():
    seen = []
    assert run(lambda batch, w: [Inter(batch, seen)]).global_step == 5
    assert seen == [6.0, 22.0, 17.0, 6.0, 22.0]

"""What an optimizer knows of the cluster."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.optimizer.step_context import step_context
from moxing.tensorflow.optimizer.workers import num_workers, task_device, task_index


def test_the_run_counts_before_the_flag():
    assert num_workers() is None
    mox.set_flag("worker_hosts", "a:1,b:1,c:1,")
    assert num_workers() == 3
    with step_context(workers=2):
        assert num_workers() == 2


@pytest.mark.parametrize(
    ("device", "expected", "index"),
    [
        ("/job:worker/task:2/gpu:1", "/job:worker/task:2/cpu:0", 2),
        ("/job:worker/replica:0/task:11", "/job:worker/replica:0/task:11/cpu:0", 11),
        ("/gpu:0", None, 0),
        ("", None, 0),
    ],
)
def test_the_device_of_this_worker(device, expected, index):
    with tf.Graph().as_default(), tf.device(device):
        assert task_device() == expected
        assert task_index() == index

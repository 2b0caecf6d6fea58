"""Rank and size, and who asked for them."""

from __future__ import annotations

from moxing.framework.flags import FLAGS
from moxing.tensorflow.executor import ops_adapter


def test_calls_are_recorded_inside_only():
    ops_adapter.rank()
    with ops_adapter.recorded_calls() as outer:
        ops_adapter.size()
        with ops_adapter.recorded_calls() as inner:
            ops_adapter.rank()
    ops_adapter.size()
    assert (outer, inner) == (["size", "rank"], ["rank"])


def test_a_worker_of_a_cluster():
    FLAGS.set("worker_hosts", "a:1,b:2,c:3")
    FLAGS.set("job_name", "worker")
    FLAGS.set("task_index", 2)
    assert (ops_adapter.rank(), ops_adapter.size()) == (2, 3)

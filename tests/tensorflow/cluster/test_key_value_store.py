"""The key-value store of a process, on a real server."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from moxing.cli.cluster.launcher import free_ports
from moxing.tensorflow.cluster.key_value_store import KeyValueStore


@pytest.fixture(scope="module")
def target():
    spec = tf.train.ClusterSpec({"worker": [f"127.0.0.1:{free_ports(1)[0]}"]})
    return tf.train.Server(spec, "worker", 0).target


def test_texts_stay_when_a_connection_closes(target):
    first = KeyValueStore(target, "/job:worker/task:0")
    assert first.read("key") is None
    first.write("key", "old")
    first.write("key", "new \u00e4")
    first.write("other", "text")
    first.close()
    second = KeyValueStore(target, "/job:worker/task:0")
    assert (second.read("key"), second.read("other"), second.read("ke")) == ("new \u00e4", "text", None)
    second.close()

"""Real servers of several workers, all in one process."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import tensorflow.compat.v1 as tf

from moxing.cli.cluster.launcher import free_ports
from moxing.tensorflow.cluster import Role
from moxing.tensorflow.cluster.server import Server


@contextmanager
def two_servers():
    """The servers of two workers, both in this process; TensorFlow's servers cannot be ended before it ends."""
    hosts = tuple(f"127.0.0.1:{port}" for port in free_ports(2))
    servers = [Server(Role("worker", index, hosts), tf.ConfigProto()) for index in range(2)]
    threads = [threading.Thread(target=one.wait_for_peers) for one in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield servers
    for one in servers:
        one._watch.stop()

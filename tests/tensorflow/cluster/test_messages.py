"""Messages between real servers, and the collective operations that are built from them."""

from __future__ import annotations

import threading
import time

import pytest
from servers import two_servers

from moxing.tensorflow.cluster.waiting import PeerLostError


@pytest.fixture(scope="module")
def pair():
    with two_servers() as servers:
        yield servers


def together(*functions):
    """The results of functions that wait for each other."""
    results = {}

    def call(place):
        results[place] = functions[place]()

    threads = [threading.Thread(target=call, args=(place,), daemon=True) for place in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return [results[place] for place in range(len(functions))]


def test_messages(pair):
    chief, other = (server.messages for server in pair)
    assert other.received("seed") is None
    chief.broadcast("seed", {"seed": 7, "place": [1, 2], "text": "ä"})
    assert other.received("seed") == {"seed": 7, "place": [1, 2], "text": "ä"}
    assert chief.received("seed") is None  # every process has a store of its own
    other.send("worker 0", "seed", 0)
    assert chief.receive("seed") == 0
    chief.send("worker 1", "seed", False)
    assert other.receive("seed") is False


def test_collective_operations(pair):
    chief, other = (server.messages for server in pair)
    order = []

    def late():
        time.sleep(0.5)
        order.append("worker 1")
        other.chief_barrier("done")

    together(lambda: (chief.chief_barrier("done"), order.append("worker 0")), late)
    assert order == ["worker 1", "worker 0"]
    for run, (first, second) in enumerate([(True, False), (False, True), (False, False), (True, True)]):
        key = f"run_{run}"
        answers = together(lambda: chief.any_worker(key, first), lambda: other.any_worker(key, second))  # noqa: B023
        assert answers == [first or second] * 2


def test_a_worker_that_said_goodbye_has_no_say():
    with two_servers() as servers:
        chief, other = (server.messages for server in servers)
        other.send("worker 0", "before/worker 1", True)
        servers[1].leave()
        for own in (True, False):
            assert together(lambda: chief.any_worker(f"own is {own}", own)) == [own]  # noqa: B023
        assert together(lambda: chief.any_worker("before", False)) == [True]  # it said so while it was there
        assert together(lambda: chief.chief_barrier("done")) == [None]


def test_a_chief_that_said_goodbye_tells_nothing_any_more():
    with two_servers() as servers:
        chief, other = (server.messages for server in servers)
        chief.send("worker 1", "last words", 7)
        servers[0].leave()
        assert other.receive("last words") == 7
        with pytest.raises(PeerLostError, match="worker 0 has ended its run and left, while worker 1 still"):
            other.receive("never")

"""Different host lists are told before a job begins, on all sides; servers are real, several in one process."""

from __future__ import annotations

import logging
import threading
import time

import pytest
import tensorflow.compat.v1 as tf

from moxing.cli.cluster.launcher import free_ports
from moxing.framework.flags import FLAGS
from moxing.tensorflow.cluster import Role, connectivity, server
from moxing.tensorflow.cluster.roles import RoleError
from moxing.tensorflow.cluster.waiting import PeerLostError


class Waiting:
    """A process of a job that waits for its peers, and then for the chief's word, in a thread."""

    def __init__(self, role: Role) -> None:
        self.server, self.error = server.Server(role, tf.ConfigProto()), None
        self.thread = threading.Thread(target=self._wait, daemon=True)

    def _wait(self) -> None:
        try:
            self.server.wait_for_peers()
            if self.server.role.is_chief:
                for name in self.server.role.peers:
                    self.server.messages.send(name, "go", True)
            else:
                self.server.messages.receive("go")
        except Exception as error:
            self.error = error


def wait_all(*roles: Role) -> list[Exception | None]:
    """What becomes of all: the error of each, None for one that goes on."""
    waiting = [Waiting(role) for role in roles]
    for one in waiting:
        one.thread.start()
    for one in waiting:
        one.thread.join(30)
    stuck = [one.server.role.name for one in waiting if one.thread.is_alive()]
    for one in waiting:
        one.server._watch.stop()
    assert not stuck
    return [one.error for one in waiting]


def addresses(count: int) -> tuple[str, ...]:
    return tuple(f"127.0.0.1:{port}" for port in free_ports(count))


def test_a_longer_list_on_one_worker():
    """Worker 1 waits for a worker that only it knows. All end, the ps too, whose lists are right."""
    *hosts, ps, nobody = addresses(4)
    short, long = tuple(hosts), (*hosts, nobody)
    errors = wait_all(Role("worker", 0, short, (ps,)), Role("worker", 1, long, (ps,)), Role("ps", 0, short, (ps,)))
    for error in errors:
        assert isinstance(error, RoleError)
        assert f"worker 2 is missing for worker 0 and {nobody} for worker 1" in str(error)


def test_a_worker_that_the_chief_does_not_know():
    hosts = addresses(3)
    known, other, stranger = wait_all(
        Role("worker", 0, hosts[:2]), Role("worker", 1, hosts[:2]), Role("worker", 2, hosts)
    )
    assert (known, other) == (None, None)
    assert isinstance(stranger, RoleError)
    assert "worker 0 does not know worker 2" in str(stranger) and "3 workers (127.0.0.1:" in str(stranger)


def test_who_has_not_joined_is_told(monkeypatch, caplog):
    """The server of worker 1 is up, but it waits for something else."""
    monkeypatch.setattr(connectivity, "WAIT_MESSAGE_AFTER", 0.5)
    monkeypatch.setattr(connectivity, "WAIT_MESSAGE_EVERY", 1.0)
    hosts = addresses(2)
    chief, other = Waiting(Role("worker", 0, hosts)), Waiting(Role("worker", 1, hosts))
    with caplog.at_level(logging.WARNING, "tensorflow"):
        chief.thread.start()
        until = time.monotonic() + 20
        while caplog.text.count("worker 0 is waiting.") < 2 and time.monotonic() < until:
            time.sleep(0.05)
    assert chief.thread.is_alive()
    assert caplog.text.count("worker 0 is waiting.") >= 2, "it is said again and again"
    assert f"worker 1 at {hosts[1]}: the process is there but has not joined" in caplog.text
    assert "keeps waiting; --session_timeout=SECONDS makes it give up" in caplog.text
    other.thread.start()
    for one in (chief, other):
        one.thread.join(20)
        one.server._watch.stop()
        assert not one.thread.is_alive() and one.error is None


def test_a_job_forms_when_all_have_met():
    """The chief reaches everybody, but worker 1 does not reach the ps of its own lists yet."""
    *hosts, ps = addresses(3)
    roles = [Role("worker", index, tuple(hosts), (ps,)) for index in range(2)]
    chief, other = map(Waiting, roles)
    real = connectivity.unreachable

    def unreachable(peers, timeout=2.0):
        return real(peers, timeout) or ({"ps 0": "no answer"} if "worker 0" in peers and blocked else {})

    blocked = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connectivity, "unreachable", unreachable)
        served = Waiting(Role("ps", 0, tuple(hosts), (ps,)))
        for one in (chief, other):
            one.thread.start()
        time.sleep(3)
        assert chief.thread.is_alive(), "worker 1 has greeted, and not met all"
        blocked = False
        served.thread.start()
        for one in (chief, other, served):
            one.thread.join(20)
            one.server._watch.stop()
            assert not one.thread.is_alive() and one.error is None


def test_a_limit_to_the_waiting(monkeypatch):
    hosts = addresses(2)
    FLAGS.set("session_timeout", 1)
    Waiting(Role("worker", 1, hosts))  # it never calls
    (error,) = wait_all(Role("worker", 0, hosts))
    assert isinstance(error, PeerLostError)
    assert "has not joined" in str(error)

"""Waiting for other processes: messages and the timeout."""

from __future__ import annotations

import time

import pytest

from moxing.framework.flags import FLAGS
from moxing.tensorflow.cluster import Role, connectivity
from moxing.tensorflow.cluster.waiting import POLL_SECONDS, PeerLostError, PeerWait

ROLE = Role("worker", 0, ("127.0.0.1:2222", "127.0.0.1:2223"))
MISSING = {"worker 1": "connection refused"}


def test_a_poll_takes_a_moment(caplog):
    started = time.monotonic()
    PeerWait(ROLE).poll(MISSING)
    assert time.monotonic() - started >= POLL_SECONDS
    assert not caplog.records


@pytest.mark.parametrize(
    ("timeout", "outlook"),
    [(None, "keeps waiting; --session_timeout=SECONDS makes it give up"), (60, "gives up after --session_timeout=60")],
)
def test_a_message_now_and_then(monkeypatch, caplog, timeout, outlook):
    monkeypatch.setattr(connectivity, "WAIT_MESSAGE_AFTER", -1.0)
    FLAGS.set("session_timeout", timeout)
    waiting = PeerWait(ROLE)
    with caplog.at_level("WARNING", "tensorflow"):
        waiting.poll(MISSING)
        waiting.poll(MISSING)
    (record,) = caplog.records
    assert "worker 0 is waiting." in record.getMessage() and outlook in record.getMessage()
    assert "worker 1 at 127.0.0.1:2223: connection refused" in record.getMessage()


def test_the_timeout():
    FLAGS.set("session_timeout", 1)
    waiting = PeerWait(ROLE)
    started = time.monotonic()
    with pytest.raises(PeerLostError, match=r"--session_timeout=1: after 1 s\n(.*\n)*.*connection refused"):
        while time.monotonic() - started < 30:
            waiting.poll(MISSING)
    assert time.monotonic() - started > 1

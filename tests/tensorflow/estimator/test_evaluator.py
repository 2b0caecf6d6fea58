"""The evaluator's view of the chief: real sockets."""

from __future__ import annotations

import json
import socket
import time

import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.estimator.evaluator import ChiefWatch


def config_of(chief: str, address: str) -> str:
    return json.dumps({"cluster": {chief: [address]}, "task": {"type": "evaluator", "index": 0}})


def end_of_chief(chief: str = "chief") -> ChiefWatch:
    """The watch of a chief that was there and has just gone."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        watch = ChiefWatch(config_of(chief, f"127.0.0.1:{server.getsockname()[1]}"))
        server.accept()[0].close()  # the watch has seen it
        assert watch.before_eval() and watch.after_eval(None)
    return watch


@pytest.mark.parametrize("chief", ["chief", "master"])
def test_under_the_launcher_the_end_of_the_chief_is_that_of_the_evaluator(monkeypatch, chief):
    monkeypatch.setenv("MOXING_SUPERVISED", "1")
    watch = end_of_chief(chief)
    started = time.monotonic()
    watch.sleep(60)
    assert time.monotonic() - started < 30
    # One more evaluation, of the last checkpoint.
    assert watch.before_eval()
    assert not watch.after_eval(None)


def test_an_evaluation_that_began_before_the_end_is_not_the_last(monkeypatch):
    monkeypatch.setenv("MOXING_SUPERVISED", "1")
    watch = end_of_chief()
    assert watch.before_eval()
    watch.sleep(60)
    assert watch.after_eval(None)


def test_elsewhere_the_chief_may_come_back(monkeypatch):
    monkeypatch.delenv("MOXING_SUPERVISED", raising=False)
    lines = []
    monkeypatch.setattr(tf.logging, "warning", lambda text, *values: lines.append(text % values))
    watch = end_of_chief()
    watch.sleep(60)
    assert len(lines) == 1
    assert "The training has ended or was lost: the chief's port 127.0.0.1:" in lines[0]
    assert watch.before_eval() and watch.after_eval(None)
    started = time.monotonic()
    watch.sleep(0.3)  # it waits again
    assert time.monotonic() - started >= 0.3


def test_without_a_chief_it_only_waits():
    watch = ChiefWatch("")
    started = time.monotonic()
    watch.sleep(0.2)
    assert time.monotonic() - started >= 0.2
    assert watch.before_eval() and watch.after_eval(None)

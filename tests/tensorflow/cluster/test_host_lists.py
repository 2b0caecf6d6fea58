"""Differences between the host lists of two processes."""

from __future__ import annotations

import socket

import pytest

from moxing.tensorflow.cluster.host_lists import host_list_difference


def test_the_same_lists():
    lists = {"worker": ["a:1", "b:1"], "ps": ["c:1"]}
    assert host_list_difference(lists, {"ps": ["c:1"], "worker": ["a:1", "b:1"]}, "worker 1") is None


@pytest.mark.parametrize(
    ("others", "texts"),
    [
        (
            {"worker": ["a:1", "b:1", "c:1"]},
            ["worker 1 has 3 workers (a:1,b:1,c:1)", "worker 2 is missing for worker 0"],
        ),
        ({"worker": ["a:1"]}, ["worker 1 has 1 worker (a:1)", "worker 1 is b:1 for worker 0 and missing for worker 1"]),
        ({"worker": ["a:1", "b:2"]}, ["worker 1 is b:1 for worker 0 and b:2 for worker 1"]),
        ({"worker": ["b:1", "a:1"]}, ["worker 0 is a:1 for worker 0 and b:1 for worker 1", "in the same order"]),
        ({"worker": ["a:1", "b:1"], "ps": ["c:1"]}, ["worker 0 has no ps, worker 1 has 1 ps (c:1)"]),
    ],
)
def test_what_differs_is_named(monkeypatch, others, texts):
    monkeypatch.setattr(socket, "getaddrinfo", _no_names)
    text = host_list_difference({"worker": ["a:1", "b:1"]}, others, "worker 1")
    assert text.startswith("worker 0 and worker 1 were started with different host lists.")
    for part in texts:
        assert part in text


def _no_names(*arguments, **named):
    raise OSError("no name server here")


def test_long_lists_are_shortened():
    hosts = [f"h{index}:1" for index in range(300)]
    text = host_list_difference({"worker": hosts}, {"worker": [host.replace(":1", ":2") for host in hosts]}, "ps 0")
    assert len(text) < 900 and "300 workers (h0:1," in text and ", and 294 more." in text


@pytest.mark.parametrize(
    ("chiefs", "others"),
    [
        (["localhost:1", "b:1"], ["127.0.0.1:1", "b:1"]),  # a name and its address
        (["0.0.0.0:1", "b:1"], ["a:1", "b:1"]),  # what the chief calls itself
        (["a:1", "b:1"], ["a:1", "localhost:1"]),  # what worker 1 calls itself
    ],
)
def test_names_for_the_same_process(chiefs, others):
    assert host_list_difference({"worker": chiefs}, {"worker": others}, "worker 1") is None

"""What keeps a worker from its peers: checked with real ports, told in words."""

from __future__ import annotations

import socket
import time

from moxing.framework.util.interfaces import open_interfaces
from moxing.tensorflow.cluster import connectivity
from moxing.tensorflow.cluster.roles import Role

ELSEWHERE = "203.0.113.7:2222"  # an address for documentation: no machine has it


def test_which_peers_cannot_be_reached(listening_process, closed_address, silent_server):
    silent = "127.0.0.1:%d" % silent_server.getsockname()[1]
    addresses = {"ps 0": listening_process.address, "ps 1": closed_address, **{f"worker {n}": silent for n in range(4)}}
    found = connectivity.unreachable(addresses, timeout=0.5)
    assert found == {"ps 1": "connection refused", **{f"worker {n}": "no answer" for n in range(4)}}


def test_silent_peers_are_probed_at_the_same_time(silent_server):
    silent = "127.0.0.1:%d" % silent_server.getsockname()[1]
    before = time.monotonic()
    found = connectivity.unreachable({f"worker {n}": silent for n in range(16)}, timeout=2)
    assert found == {f"worker {n}": "no answer" for n in range(16)}
    # One after the other, they take 32 seconds by definition.
    assert time.monotonic() - before < 32


def test_a_name_nobody_knows(monkeypatch):
    def fail(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert "does not resolve" in connectivity.unreachable({"ps 0": "nowhere:2222"})["ps 0"]


# --- the explanation -------------------------------------------------------------------------------------------------


def role(*workers, index=0, ps=(), origin="--worker_hosts"):
    return Role("worker", index, workers, tuple(ps), origin=origin)


def test_the_explanation_names_the_peers_and_sorts_the_reasons():
    text = connectivity.explain(
        role("127.0.0.1:2222", "127.0.0.1:2223", "b:1", ps=["c:1"]),
        {
            "worker 1": "connection refused",
            "worker 2": "the name b does not resolve (no such name)",
            "ps 0": "no answer",
        },
    )
    lines = text.splitlines()
    assert lines[0] == "worker 0 (127.0.0.1:2222) cannot reach 3 of its 3 peers:"
    assert lines[1] == "  worker 1 at 127.0.0.1:2223: connection refused"
    assert any("worker 1 has not started yet" in line for line in lines)
    assert any("host name of worker 2" in line for line in lines)
    assert any("firewall drops packets to ps 0" in line for line in lines)
    assert "proxy" not in text and "task_index" not in text


def test_a_task_index_of_another_machine():
    text = connectivity.explain(role("127.0.0.1:2222", ELSEWHERE, index=1), {"worker 0": "connection refused"})
    assert f"--task_index makes it worker 1 at {ELSEWHERE}, but this machine has the addresses" in text
    assert "on this machine is the address of worker 0 (127.0.0.1:2222)" in text
    for address in open_interfaces():
        assert address in text
    by_config = connectivity.explain(role("a:1", ELSEWHERE, index=1, origin="TF_CONFIG"), {"worker 0": "no answer"})
    assert "the index in TF_CONFIG" in by_config


def test_a_proxy_in_the_way_is_named_without_its_password(monkeypatch):
    me = role("127.0.0.1:2222", "10.0.0.2:2222")
    monkeypatch.setenv("https_proxy", "http://me:secret@proxy.site:3128")
    monkeypatch.setenv("no_proxy", "10.9.0.0/16")
    text = connectivity.explain(me, {"worker 1": "no answer"})
    assert "https_proxy (proxy.site) is used for 10.0.0.2" in text
    assert "secret" not in text
    monkeypatch.setenv("no_proxy", "10.0.0.0/16")
    assert "proxy" not in connectivity.explain(me, {"worker 1": "no answer"})
    monkeypatch.delenv("https_proxy")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.site:3128")  # gRPC does not read it
    monkeypatch.delenv("no_proxy")
    assert "proxy" not in connectivity.explain(me, {"worker 1": "no answer"})


def test_the_own_port_taken_by_another_program(listening_process):
    text = connectivity.explain(role(listening_process.address, "10.0.0.2:1"), {"worker 1": "no answer"})
    assert f"of worker 0 is in use on this machine by process {listening_process.pid} (" in text


def test_the_own_servers_port_is_not_taken_by_another():
    with socket.create_server(("127.0.0.1", 0)) as own:
        address = f"127.0.0.1:{own.getsockname()[1]}"
        assert "in use" not in connectivity.explain(role(address, "10.0.0.2:1"), {"worker 1": "no answer"})


def test_open_ports_and_still_no_answer():
    text = connectivity.explain(role("127.0.0.1:2222", "127.0.0.1:2223"), {})
    assert "although the ports of its 1 peers are open" in text
    assert "Another program listens on a peer's port" in text


def test_peers_that_are_there_and_have_not_joined():
    text = connectivity.explain(
        role("127.0.0.1:2222", "127.0.0.1:2223", "127.0.0.1:2224"),
        {"worker 1": "the process is there but has not joined", "worker 2": "connection refused"},
    )
    assert text.startswith("worker 0 (127.0.0.1:2222) misses 2 of its 2 peers:\n")
    assert "  worker 1 at 127.0.0.1:2223: the process is there but has not joined\n" in text
    assert "worker 1 is waiting for other processes" in text and "other host lists" in text
    assert "worker 2 has not started yet" in text and "firewall" not in text

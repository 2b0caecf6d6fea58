"""What keeps a worker from its peers: checked with real ports, told in words."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest

from moxing.framework.util.interfaces import open_interfaces
from moxing.tensorflow.cluster import reach
from moxing.tensorflow.cluster.roles import Role

ELSEWHERE = "203.0.113.7:2222"  # an address for documentation: no machine has it


def test_which_peers_cannot_be_reached(listening_process, closed_address, silent_server):
    silent = "127.0.0.1:%d" % silent_server.getsockname()[1]
    addresses = {"ps 0": listening_process.address, "ps 1": closed_address, **{f"worker {n}": silent for n in range(4)}}
    before = time.monotonic()
    found = reach.unreachable(addresses, timeout=0.5)
    assert time.monotonic() - before < 1.5  # four silent ones at the same time
    assert found == {"ps 1": "connection refused", **{f"worker {n}": "no answer" for n in range(4)}}


def test_a_name_nobody_knows(monkeypatch):
    def fail(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert "does not resolve" in reach.unreachable({"ps 0": "nowhere:2222"})["ps 0"]


# --- the explanation -------------------------------------------------------------------------------------------------


def role(*workers, index=0, ps=(), origin="--worker_hosts"):
    return Role("worker", index, workers, tuple(ps), origin=origin)


def test_the_explanation_names_the_peers_and_sorts_the_reasons():
    text = reach.explain(
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
    assert any("firewall drops what is sent to ps 0" in line for line in lines)
    assert "proxy" not in text and "task_index" not in text


def test_a_task_index_of_another_machine():
    text = reach.explain(role("127.0.0.1:2222", ELSEWHERE, index=1), {"worker 0": "connection refused"})
    assert f"--task_index says that this is worker 1 at {ELSEWHERE}, but this machine has the addresses" in text
    assert "an address of this machine has worker 0 (127.0.0.1:2222)" in text
    for address in open_interfaces():
        assert address in text
    by_config = reach.explain(role("a:1", ELSEWHERE, index=1, origin="TF_CONFIG"), {"worker 0": "no answer"})
    assert "the index in TF_CONFIG" in by_config


def test_a_proxy_in_the_way_is_named_without_its_password(monkeypatch):
    me = role("127.0.0.1:2222", "10.0.0.2:2222")
    monkeypatch.setenv("https_proxy", "http://me:secret@proxy.site:3128")
    monkeypatch.setenv("no_proxy", "10.9.0.0/16")
    text = reach.explain(me, {"worker 1": "no answer"})
    assert "https_proxy (proxy.site) does not leave out 10.0.0.2" in text
    assert "secret" not in text
    monkeypatch.setenv("no_proxy", "10.0.0.0/16")
    assert "proxy" not in reach.explain(me, {"worker 1": "no answer"})
    monkeypatch.delenv("https_proxy")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.site:3128")  # gRPC does not read it
    monkeypatch.delenv("no_proxy")
    assert "proxy" not in reach.explain(me, {"worker 1": "no answer"})


def test_the_own_port_taken_by_another_program(listening_process):
    text = reach.explain(role(listening_process.address, "10.0.0.2:1"), {"worker 1": "no answer"})
    assert f"of worker 0 is in use on this machine by process {listening_process.pid} (" in text


def test_the_own_servers_port_is_not_taken_by_another():
    with socket.create_server(("127.0.0.1", 0)) as own:
        address = f"127.0.0.1:{own.getsockname()[1]}"
        assert "in use" not in reach.explain(role(address, "10.0.0.2:1"), {"worker 1": "no answer"})


def test_open_ports_and_still_no_answer():
    text = reach.explain(role("127.0.0.1:2222", "127.0.0.1:2223"), {})
    assert "although the ports of its 1 peers are open" in text
    assert "Another program listens on a peer's port" in text


def test_peers_that_are_there_and_have_not_joined():
    text = reach.explain(
        role("127.0.0.1:2222", "127.0.0.1:2223", "127.0.0.1:2224"),
        {"worker 1": "the process is there but has not joined", "worker 2": "connection refused"},
    )
    assert text.startswith("worker 0 (127.0.0.1:2222) misses 2 of its 2 peers:\n")
    assert "  worker 1 at 127.0.0.1:2223: the process is there but has not joined\n" in text
    assert "worker 1 is waiting for others itself" in text and "other host lists" in text
    assert "worker 2 has not started yet" in text and "firewall" not in text


# --- the own port ----------------------------------------------------------------------------------------------------


def test_a_port_in_use_names_who_has_it(listening_process):
    port = listening_process.address.split(":")[1]
    with pytest.raises(ValueError) as caught:
        reach.check_port_free(f"some.host:{port}", "worker 1")
    assert str(caught.value).startswith(
        f"port {port} of worker 1 is in use on this machine: process {listening_process.pid}"
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1"])
def test_a_port_in_use_on_any_address_counts(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError as error:
        pytest.skip(f"no {host} here: {error}")
    with server:
        port = server.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port} of this process is in use"):
            reach.check_port_free(f"localhost:{port}")
    reach.check_port_free(f"localhost:{port}")


def test_a_port_that_cools_down_is_free():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address) as client:
            accepted, _ = server.accept()
            accepted.close()  # the server's side hangs up first and stays in TIME_WAIT
            assert client.recv(1) == b""
    with socket.socket() as strict, pytest.raises(OSError, match="in use"):
        strict.bind(address)
    reach.check_port_free(f"127.0.0.1:{address[1]}", "worker 1")


# --- proxies ---------------------------------------------------------------------------------------------------------


def test_without_a_proxy_the_environment_stays():
    assert reach.without_proxies(["10.0.0.2:2222"]) == {}
    assert not [name for name in os.environ if name.lower().endswith("_proxy")]


def test_cluster_hosts_go_around_the_proxy(monkeypatch):
    for name in ("no_grpc_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")  # so that monkeypatch takes back what is set below
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "localhost,.site")
    changed = reach.without_proxies(["10.0.0.2:2222", "10.0.0.2:2223", "[fd00::2]:1", "n1.site:1"])
    expected = "localhost,.site,10.0.0.2,fd00::2"
    assert changed == dict.fromkeys(["no_grpc_proxy", "no_proxy", "NO_PROXY"], expected)
    assert all(os.environ[name] == expected for name in changed)
    assert reach.without_proxies(["10.0.0.2:2222"]) == {}


def test_an_exception_for_grpc_alone_is_kept(monkeypatch):
    for name in ("no_grpc_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("grpc_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_grpc_proxy", "10.0.0.0/8")
    monkeypatch.setenv("no_proxy", "*")  # gRPC knows no `*`
    changed = reach.without_proxies(["10.0.0.2:1", "192.168.0.2:1"])
    assert changed["no_grpc_proxy"] == "10.0.0.0/8,192.168.0.2"
    assert changed["no_proxy"] == "*,10.0.0.2,192.168.0.2"


_SERVER = """
import sys
import tensorflow.compat.v1 as tf
server = tf.train.Server(tf.train.ClusterSpec({"worker": [sys.argv[1]]}), "worker", 0)
sys.stdin.read()
"""

_CLIENT = """
import os, sys
from moxing.framework.util.interfaces import open_interfaces
from moxing.tensorflow.cluster import reach
import tensorflow.compat.v1 as tf

def answer(seconds):
    config = tf.ConfigProto(operation_timeout_in_ms=1000 * seconds)
    try:
        with tf.Graph().as_default(), tf.Session(f"grpc://{sys.argv[1]}", config=config) as session:
            return session.run(tf.constant("direct")).decode()
    except tf.errors.OpError as error:
        return type(error).__name__

while reach.unreachable({"server": sys.argv[1]}):
    pass
through = answer(seconds=2)
reach.without_proxies([sys.argv[1]])
print(through, answer(seconds=60), flush=True)
os._exit(0)  # the session through the proxy still tries
"""


def test_grpc_itself_goes_around_the_proxy(closed_address):
    """A proxy that is not there: gRPC is stuck with it, and no longer once the cluster's hosts are left out."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    command, plain = [sys.executable, "-c"], {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    proxied = {**plain, "http_proxy": f"http://{closed_address}"}
    with subprocess.Popen([*command, _SERVER, address], env=plain, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL):
        client = [*command, _CLIENT, address]
        done = subprocess.run(client, env=proxied, capture_output=True, text=True, timeout=120)
    assert done.stdout.split()[-2:] == ["DeadlineExceededError", "direct"], done.stderr

"""Proxies in the environment, and gRPC with one."""

from __future__ import annotations

import os
import socket

from helpers.warm import PIPE, Program, Surroundings, WarmProcess, run
from moxing.tensorflow.cluster.proxies import bypass_proxies, proxy_problems


def test_without_a_proxy_the_environment_stays():
    assert bypass_proxies(["10.0.0.2:2222"]) == {}
    assert not [name for name in os.environ if name.lower().endswith("_proxy")]


def test_cluster_hosts_go_around_the_proxy(monkeypatch):
    for name in ("no_grpc_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")  # so that monkeypatch takes back what is set below
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "localhost,.site")
    changed = bypass_proxies(["10.0.0.2:2222", "10.0.0.2:2223", "[fd00::2]:1", "n1.site:1"])
    expected = "localhost,.site,10.0.0.2,fd00::2"
    assert changed == dict.fromkeys(["no_grpc_proxy", "no_proxy", "NO_PROXY"], expected)
    assert all(os.environ[name] == expected for name in changed)
    assert bypass_proxies(["10.0.0.2:2222"]) == {}


def test_an_exception_for_grpc_alone_is_kept(monkeypatch):
    for name in ("no_grpc_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("grpc_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_grpc_proxy", "10.0.0.0/8")
    monkeypatch.setenv("no_proxy", "*")  # gRPC knows no `*`
    changed = bypass_proxies(["10.0.0.2:1", "192.168.0.2:1"])
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
from moxing.tensorflow.cluster.connectivity import unreachable
from moxing.tensorflow.cluster.proxies import bypass_proxies
import tensorflow.compat.v1 as tf

def answer(seconds):
    config = tf.ConfigProto(operation_timeout_in_ms=1000 * seconds)
    try:
        with tf.Graph().as_default(), tf.Session(f"grpc://{sys.argv[1]}", config=config) as session:
            return session.run(tf.constant("direct")).decode()
    except tf.errors.OpError as error:
        return type(error).__name__

while unreachable({"server": sys.argv[1]}):
    pass
through = answer(seconds=2)
bypass_proxies([sys.argv[1]])
print(through, answer(seconds=60), flush=True)
os._exit(0)  # the session through the proxy still tries
"""


def test_grpc_itself_goes_around_the_proxy(closed_address):
    """A proxy that is not there: gRPC is stuck with it, and no longer once the cluster's hosts are left out."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    proxied = {**os.environ, "http_proxy": f"http://{closed_address}"}
    with WarmProcess(Program("code", _SERVER, (address,)), stdin=PIPE):
        done = run(Program("code", _CLIENT, (address,)), Surroundings(environment=proxied))
    assert done.stdout.split()[-2:] == ["DeadlineExceededError", "direct"], done.stderr


def test_a_host_list_of_exceptions(monkeypatch):
    for name in ("no_grpc_proxy", "no_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("grpc_proxy", "http://proxy:3128")
    assert len(proxy_problems(["10.0.0.2:1", "10.0.0.3:1"])) == 1
    monkeypatch.setenv("no_proxy", "10.0.0.0/8")
    assert proxy_problems(["10.0.0.2:1", "10.0.0.3:1"]) == []

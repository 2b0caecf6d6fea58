"""Whether a port of this machine is free, with real sockets and processes."""

from __future__ import annotations

import os
import socket

import pytest

from moxing.tensorflow.cluster.ports import check_port_free, listeners


def test_a_port_in_use_names_who_has_it(listening_process):
    port = listening_process.address.split(":")[1]
    with pytest.raises(ValueError) as caught:
        check_port_free(f"some.host:{port}", "worker 1")
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
            check_port_free(f"localhost:{port}")
    check_port_free(f"localhost:{port}")


def test_a_port_that_cools_down_is_free():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address) as client:
            accepted, _ = server.accept()
            accepted.close()  # the server's side hangs up first and stays in TIME_WAIT
            assert client.recv(1) == b""
    with socket.socket() as strict, pytest.raises(OSError, match="in use"):
        strict.bind(address)
    check_port_free(f"127.0.0.1:{address[1]}", "worker 1")


def test_the_listeners_of_a_port(listening_process):
    port = int(listening_process.address.split(":")[1])
    (found,) = listeners(port)
    assert found.pid == listening_process.pid
    assert str(found).startswith(f"process {found.pid} (") and found.command in str(found)
    with socket.create_server(("127.0.0.1", 0)) as own:
        assert [user.pid for user in listeners(own.getsockname()[1])] == [os.getpid()]

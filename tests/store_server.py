"""A real S3 store for tests: SeaweedFS, started once for all test processes of a session, stopped when none is left.

Started as a program, with a directory, it is the keeper of the server: it runs `weed`, and ends it when no process
whose number is in `users/` lives any more. So nothing stays behind, whatever happens to the tests.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

from weed_server import ACCESS_KEY, SECRET_KEY, START_SECONDS, running_weed


class Store(NamedTuple):
    """A running store."""

    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that lead `mox.file` to it."""
        return {"S3_ENDPOINT": self.endpoint, "ACCESS_KEY_ID": ACCESS_KEY, "SECRET_ACCESS_KEY": SECRET_KEY}


@contextlib.contextmanager
def join_store(folder: Path):
    """The store in `folder`, started if it is not running. Who leaves last waits until it has stopped."""
    (folder / "users").mkdir(parents=True, exist_ok=True)
    own = folder / "users" / str(os.getpid())
    with _locked(folder):
        own.touch()
        if not _is_alive(_keeper(folder)):
            (folder / "state.json").unlink(missing_ok=True)
            # Not a Popen, which complains when its process outlives it: another test process may still need the store.
            command = [sys.executable, __file__, str(folder)]
            log = (os.POSIX_SPAWN_OPEN, 1, str(folder / "keeper.log"), os.O_WRONLY | os.O_CREAT, 0o600)
            actions = [log, (os.POSIX_SPAWN_DUP2, 1, 2)]
            keeper = os.posix_spawn(sys.executable, command, os.environ, file_actions=actions)
            (folder / "keeper").write_text(str(keeper))
        state = _wait_for_state(folder)
    try:
        yield Store(state["port"])
    finally:
        with _locked(folder):
            own.unlink()
            if not _users(folder):
                _wait_for_end(_keeper(folder))


def _wait_for_state(folder: Path) -> dict:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if (folder / "state.json").exists():
            return json.loads((folder / "state.json").read_text())
        if not _is_alive(_keeper(folder)):
            break
        time.sleep(0.05)
    raise RuntimeError(f"the store did not start:\n{(folder / 'weed.log').read_text()[-3000:]}")


def _wait_for_end(keeper: int | None) -> None:
    while keeper and _is_alive(keeper):
        time.sleep(0.05)


@contextlib.contextmanager
def _locked(folder: Path):
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _keeper(folder: Path) -> int | None:
    path = folder / "keeper"
    return int(path.read_text()) if path.exists() else None


def _is_alive(process: int | None) -> bool:
    if process is None:
        return False
    with contextlib.suppress(OSError, IndexError):
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"
    return False


def _users(folder: Path) -> list[int]:
    return [int(path.name) for path in (folder / "users").iterdir() if _is_alive(int(path.name))]


def keep(folder: Path) -> None:
    """Runs the server until nobody uses it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    options = {"s3_domainName": "store.localhost", "s3_autoCreateBucket": "false"}
    with running_weed(folder, volume_max=200, master_volumeSizeLimitMB=64, **options) as (weed, port):
        temporary = folder / "state.tmp"
        temporary.write_text(json.dumps({"port": port}))
        temporary.rename(folder / "state.json")
        try:
            while _users(folder) and weed.poll() is None:
                time.sleep(0.2)
        finally:
            (folder / "state.json").unlink()


if __name__ == "__main__":
    keep(Path(sys.argv[1]))

"""Messages between the processes of a job, and the collective operations that are built from them.

A message is a JSON value under a key in the key-value store of its receiver.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from moxing.tensorflow.cluster.key_value_store import KeyValueStore
from moxing.tensorflow.cluster.roles import CHIEF, Role
from moxing.tensorflow.cluster.waiting import POLL_SECONDS, PeerLostError, PeerWait


class Messages:
    """The messages of one process.

    Args:
      role: the role of this process.
      target: its TensorFlow server.
      check: called while waiting; raises an error if the job cannot go on.
    """

    def __init__(self, role: Role, target: str, check: Callable[[], None]) -> None:
        self._role, self._target, self._check = role, target, check
        self.store = KeyValueStore(target, role.device(role.name))
        self._lock = threading.Lock()
        self._left: set[str] = set()

    # --- single messages --------------------------------------------------------------------------------------------

    def send(self, peer: str, key: str, value: Any) -> None:
        """Sends a value to a process, `worker 0` or `ps 1`; does nothing if that process has left."""
        if self.has_left(peer):
            return
        store = KeyValueStore(self._target, self._role.device(peer))
        try:
            store.write(key, json.dumps(value))
        finally:
            store.close()

    def received(self, key: str) -> Any:
        """Returns the value that was sent to this process under `key`, or None."""
        text = self.store.read(key)
        return None if text is None else json.loads(text)

    def receive(self, key: str, sender: str = CHIEF, with_timeout: bool = True) -> Any:
        """Waits for a value and returns it.

        Args:
          key: the key of the message.
          sender: name of the process that sends it.
          with_timeout: see `wait`.

        Raises:
          PeerLostError: the sender has left without sending it.
        """

        def has_arrived() -> bool:
            if self.received(key) is not None:
                return True
            # Read again: it may have arrived just before the sender left.
            if self.has_left(sender) and self.received(key) is None:
                raise PeerLostError(
                    f"{sender} has ended its run and left, while {self._role.name} still needs it. All workers must "
                    "run the same script with the same flags."
                )
            return False

        self.wait(has_arrived, with_timeout)
        return self.received(key)

    # --- collective operations --------------------------------------------------------------------------------------

    def broadcast(self, key: str, value: Any) -> None:
        """Sends a value to all other workers."""
        for worker in self.other_workers:
            self.send(worker, key, value)

    def all_gather(self, key: str, value: Any, with_timeout: bool = False) -> list[Any]:
        """Returns the values of all workers, the chief's first; the same list on all. Workers that left are skipped.

        Args:
          key: the key of the operation; all workers call it.
          value: the value of this worker, not None.
          with_timeout: True if all workers call it at about the same time, see `wait`.
        """
        if not self._role.is_chief:
            self.send(CHIEF, f"{key}/{self._role.name}", value)
            return list(self.receive(key, with_timeout=with_timeout))
        values = [value, *(each for each in self._gather(key, with_timeout) if each is not None)]
        self.broadcast(key, values)
        return values

    def any_worker(self, key: str, value: bool) -> bool:
        """Whether the value of any worker is true; the same result on all."""
        return any(self.all_gather(key, value, with_timeout=True))

    def chief_barrier(self, key: str) -> None:
        """The chief waits here until all other workers have been here or have left; the others do not wait."""
        if not self._role.is_chief:
            self.send(CHIEF, f"{key}/{self._role.name}", True)
            return
        self._gather(key)

    @property
    def other_workers(self) -> list[str]:
        """The names of all other workers."""
        return [peer for peer in self._role.peers if peer.startswith("worker ")]

    def _gather(self, key: str, with_timeout: bool = False) -> list[Any]:
        """On the chief: the values of the other workers, None for one that has left."""
        for worker in self.other_workers:
            self.wait(partial(self._has_sent, key, worker), with_timeout)
        return [self.received(f"{key}/{worker}") for worker in self.other_workers]

    def _has_sent(self, key: str, worker: str) -> bool:
        return self.received(f"{key}/{worker}") is not None or self.has_left(worker)

    # --- leaving and waiting ----------------------------------------------------------------------------------------

    def leave(self, peer: str) -> None:
        """Tells a process that this one ends without an error."""
        self.send(peer, f"goodbye/{self._role.name}", True)

    def has_left(self, peer: str) -> bool:
        """Whether a process has ended without an error."""
        with self._lock:
            if peer not in self._left and self.received(f"goodbye/{peer}"):
                self._left.add(peer)
            return peer in self._left

    def wait(self, condition: Callable[[], bool], with_timeout: bool = False) -> None:
        """Waits for a condition, unless the job has lost a process.

        Args:
          condition: returns True to end the wait.
          with_timeout: True for what normally is fast: a long wait is logged, and `--session_timeout` ends it.
        """
        waiting = PeerWait(self._role)
        while not condition():
            self._check()
            if with_timeout:
                waiting.poll({})
            else:
                time.sleep(POLL_SECONDS)

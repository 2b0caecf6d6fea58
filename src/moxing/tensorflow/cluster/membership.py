"""The members of a job: before it begins, every process sends the chief its host lists, and the chief compares them.

With different host lists there would be two jobs that wait for each other.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Collection

import tensorflow.compat.v1 as tf

from moxing.tensorflow.cluster import connectivity
from moxing.tensorflow.cluster.host_lists import ADVICE, HostLists, describe, host_list_difference
from moxing.tensorflow.cluster.key_value_store import KeyValueStore
from moxing.tensorflow.cluster.roles import CHIEF, Role, RoleError

_ATTEMPT_SECONDS = 2.0


class Membership:
    """Which processes have joined the job, as seen by one process: the chief knows all, the others know the chief.

    A process sends its host lists as soon as it reaches the chief, for it may wait for a process that only its own
    lists name. It joins when it has reached all peers.

    Args:
      role: the role of this process.
      target: its TensorFlow server.
      store: its key-value store.
    """

    def __init__(self, role: Role, target: str, store: KeyValueStore) -> None:
        self._role, self._target, self._store = role, target, store
        self._absent = list(role.peers) if role.is_chief else [CHIEF]
        self._compared: set[str] = set()
        self._has_reached_all = False
        self._attempt: threading.Thread | None = None
        self._problem = ""
        self._is_unknown = False
        self._lists_of_chief: HostLists | None = None
        if role.is_chief:
            store.write("lists", json.dumps(role.spec))

    def update(self, missing: Collection[str] = ()) -> dict[str, str]:
        """Exchanges host lists: the chief reads those of the others, the others send theirs to the chief.

        Args:
          missing: the peers that cannot be reached now.

        Returns:
          The peers that have not joined, with the reason.

        Raises:
          RoleError: the host lists of the chief and of another process differ.
        """
        if self._role.is_chief:
            self._read_lists()
            return dict.fromkeys(self._absent, "the process is there but has not joined")
        self.check()
        if CHIEF in missing:
            self._forget_chief()
        elif self._absent:
            self._send_lists()
        return dict.fromkeys(self._absent, self._problem or "the process is there but has not answered")

    def check(self) -> None:
        """Raises an error if the chief has found different lists, also after this process has joined."""
        refusal = self._store.read("refused")
        if refusal is not None:
            raise RoleError(refusal)

    def join(self) -> None:
        """From now on this process reports to the chief that it has reached all peers."""
        self._has_reached_all = True
        if not self._role.is_chief:
            self._forget_chief()

    def _forget_chief(self) -> None:
        # The next process at its address may be another one.
        self._absent, self._lists_of_chief = [CHIEF], None

    def _read_lists(self) -> None:
        for name in tuple(self._absent):
            text = self._store.read(f"member/{name}")
            if text is None:
                continue
            member = json.loads(text)
            if name not in self._compared:
                self._compared.add(name)
                problem = host_list_difference(self._role.spec, member["lists"], name)
                if problem is not None:
                    self._refuse_all(problem)
                    raise RoleError(problem)
            if member["has_reached_all"]:
                self._absent.remove(name)

    def _refuse_all(self, problem: str) -> None:
        """Sends the problem to all reachable processes: they may be waiting for the one with the other lists."""

        def refuse() -> None:
            missing = connectivity.unreachable(self._role.peers)
            for name in (name for name in self._role.peers if name not in missing):
                with contextlib.suppress(tf.errors.OpError):
                    self._write(name, "refused", problem)

        # In a thread: TensorFlow waits forever for a process that has just ended.
        thread = threading.Thread(target=refuse, name="refuse", daemon=True)
        thread.start()
        thread.join(2 * _ATTEMPT_SECONDS)

    def _send_lists(self) -> None:
        # In a thread, for the same reason.
        if self._attempt is None or not self._attempt.is_alive():
            self._attempt = threading.Thread(target=self._send_lists_once, name="send host lists", daemon=True)
            self._attempt.start()
        self._attempt.join(_ATTEMPT_SECONDS)
        if self._is_unknown:
            raise RoleError(
                f"{CHIEF} does not know {self._role.name}: the host lists that it was started with are shorter than "
                f"{describe(self._role.job, self._role.spec)}. {ADVICE}"
            )
        if self._lists_of_chief is None:
            return
        self._absent = []
        problem = host_list_difference(self._lists_of_chief, self._role.spec, self._role.name)
        if problem is not None:
            raise RoleError(problem)

    def _send_lists_once(self) -> None:
        has_reached_all = self._has_reached_all
        member = {"lists": self._role.spec, "has_reached_all": has_reached_all}
        try:
            lists = self._write(CHIEF, f"member/{self._role.name}", json.dumps(member), then_read="lists")
        except tf.errors.InvalidArgumentError:
            self._problem = f"the port is open, but it is not that of {CHIEF}"
        except tf.errors.OpError as error:
            # The chief's server fetches the text from ours, if it knows our address.
            self._is_unknown = f"No worker known as /job:{self._role.task(self._role.name)[0]}/" in error.message
            self._problem = f"the port is open, but sending the host lists failed ({error.message:.100})"
        else:
            # None: the chief's server has just started. Sent before `join`: send again.
            if lists is not None and has_reached_all == self._has_reached_all:
                self._lists_of_chief = json.loads(lists)

    def _write(self, peer: str, key: str, text: str, then_read: str = "") -> str | None:
        store = KeyValueStore(self._target, self._role.device(peer))
        try:
            store.write(key, text)
            return store.read(then_read) if then_read else None
        finally:
            store.close()

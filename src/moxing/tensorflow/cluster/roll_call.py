"""Before a job begins every process tells the chief its host lists: with different ones there would be two jobs."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import threading
from collections.abc import Collection, Mapping, Sequence

import tensorflow.compat.v1 as tf

from moxing.tensorflow.cluster import reach
from moxing.tensorflow.cluster.board import Board
from moxing.tensorflow.cluster.peers import Target
from moxing.tensorflow.cluster.roles import Role, RoleError, split_address

CHIEF = "worker 0"

#: Jobs and the addresses of their processes, as `Role.spec` has them.
Lists = Mapping[str, Sequence[str]]

_SECONDS_OF_ATTEMPT = 2.0
#: So many entries of a list, and so many differences, are shown.
_MOST_SHOWN = 6
_ADVICE = "All processes of a job need the same lists, in the same order."


class RollCall:
    """Who has joined the job, from the view of one process: the chief hears all others, these hear the chief.

    A process tells its lists as soon as it reaches the chief, for it may wait for somebody who is in its lists only. It
    joins when it has reached everybody.

    Args:
      role: who this process is.
      target: its server.
      board: its own board.
    """

    def __init__(self, role: Role, target: str, board: Board) -> None:
        self._role, self._target, self._board = role, target, board
        self._absent = list(role.peers) if role.is_chief else [CHIEF]
        self._known: set[str] = set()
        self._has_met_all = False
        self._attempt: threading.Thread | None = None
        self._trouble = ""
        self._is_unknown = False
        self._lists_of_chief: Lists | None = None
        if role.is_chief:
            board.write("lists", json.dumps(role.spec))

    def call(self, missing: Collection[str] = ()) -> dict[str, str]:
        """Greets or listens, whichever is this process's part.

        Args:
          missing: the peers that cannot be reached now.

        Returns:
          Those that have not joined, each with the reason.

        Raises:
          RoleError: the host lists of the chief and of another process differ.
        """
        if self._role.is_chief:
            self._listen()
            return dict.fromkeys(self._absent, "the process is there but has not joined")
        self.check()
        if CHIEF in missing:
            self._forget_chief()
        elif self._absent:
            self._greet()
        return dict.fromkeys(self._absent, self._trouble or "the process is there but has not answered")

    def check(self) -> None:
        """Raises an error when the chief has found different lists, also after this process has joined."""
        refused = self._board.read("refused")
        if refused is not None:
            raise RoleError(refused)

    def join(self) -> None:
        """From now on this process tells the chief that it has reached everybody."""
        self._has_met_all = True
        if not self._role.is_chief:
            self._forget_chief()

    def _forget_chief(self) -> None:
        # The next one that has its address may be another process.
        self._absent, self._lists_of_chief = [CHIEF], None

    def _listen(self) -> None:
        for name in tuple(self._absent):
            text = self._board.read(f"greeting/{name}")
            if text is None:
                continue
            greeting = json.loads(text)
            if name not in self._known:
                self._known.add(name)
                problem = difference(self._role.spec, greeting["lists"], name)
                if problem is not None:
                    self._refuse(problem)
                    raise RoleError(problem)
            if greeting["has_met_all"]:
                self._absent.remove(name)

    def _refuse(self, problem: str) -> None:
        """Tells all that are there: they may be waiting for the one with the other lists."""

        def tell() -> None:
            missing = reach.unreachable(self._role.peers)
            for name in (name for name in self._role.peers if name not in missing):
                with contextlib.suppress(tf.errors.OpError):
                    _write(self._target, name, "refused", problem)

        # No longer than that: TensorFlow waits for ever for a process that has just ended.
        telling = threading.Thread(target=tell, name="refuse", daemon=True)
        telling.start()
        telling.join(2 * _SECONDS_OF_ATTEMPT)

    def _greet(self) -> None:
        # In a thread, for the same reason.
        if self._attempt is None or not self._attempt.is_alive():
            self._attempt = threading.Thread(target=self._greet_once, name="greet the chief", daemon=True)
            self._attempt.start()
        self._attempt.join(_SECONDS_OF_ATTEMPT)
        if self._is_unknown:
            raise RoleError(
                f"{CHIEF} does not know {self._role.name}: the host lists that it was started with are shorter than "
                f"{_described(self._role.job, self._role.spec)}. {_ADVICE}"
            )
        if self._lists_of_chief is None:
            return
        self._absent = []
        problem = difference(self._lists_of_chief, self._role.spec, self._role.name)
        if problem is not None:
            raise RoleError(problem)

    def _greet_once(self) -> None:
        has_met_all = self._has_met_all
        greeting = {"lists": self._role.spec, "has_met_all": has_met_all}
        try:
            lists = _write(self._target, CHIEF, f"greeting/{self._role.name}", json.dumps(greeting), ask="lists")
        except tf.errors.InvalidArgumentError:
            self._trouble = f"the port is open, but it is not that of {CHIEF}"
        except tf.errors.OpError as error:
            # The chief's server asks the greeter's for the text, if it has its address.
            self._is_unknown = f"No worker known as /job:{self._role.job}/" in error.message
            self._trouble = f"the port is open, but the greeting failed ({error.message:.100})"
        else:
            # None: its server has just started. And what was told may be old by now.
            if lists is not None and has_met_all == self._has_met_all:
                self._lists_of_chief = json.loads(lists)


def _write(target: str, peer: str, key: str, text: str, ask: str = "") -> str | None:
    board = Board(target, peer)
    try:
        board.write(key, text)
        return board.read(ask) if ask else None
    finally:
        board.close()


def difference(chiefs: Lists, others: Lists, name: str) -> str | None:
    """How the host lists of the chief and of the process `name` differ, None where they mean the same processes.

    Args:
      chiefs: the jobs and addresses that the chief knows.
      others: those that the other one knows.
      name: the name of the other one.

    Example:
      >>> print(difference({"worker": ["a:1", "b:1"]}, {"worker": ["a:1", "b:1", "c:1"]}, "worker 1"))
      worker 0 and worker 1 were started with different host lists. worker 0 has 2 workers (a:1,b:1), worker 1 has 3 \
workers (a:1,b:1,c:1): worker 2 is missing for worker 0 and c:1 for worker 1. All processes of a job need the same \
lists, in the same order.
    """
    left, right = _members(chiefs), _members(others)
    names = [member for member in {**left, **right} if not _same(left.get(member), right.get(member), member, name)]
    if not names:
        return None
    jobs = dict.fromkeys(member.split()[0] for member in names)
    lists = [f"{CHIEF} has {_described(job, chiefs)}, {name} has {_described(job, others)}" for job in jobs]
    entries = [
        f"{member} is {left.get(member, 'missing')} for {CHIEF} and {right.get(member, 'missing')} for {name}"
        for member in names[:_MOST_SHOWN]
    ]
    more = f", and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return (
        f"{CHIEF} and {name} were started with different host lists. {'; '.join(lists)}: {', '.join(entries)}{more}. "
        f"{_ADVICE}"
    )


def _members(lists: Lists) -> dict[str, str]:
    return {f"{job} {index}": address for job, hosts in lists.items() for index, address in enumerate(hosts)}


def _described(job: str, lists: Lists) -> str:
    hosts = list(lists.get(job, []))
    shown = ",".join([*hosts[:_MOST_SHOWN], *(["..."] if len(hosts) > _MOST_SHOWN else [])])
    plural = "s" if job == "worker" and len(hosts) != 1 else ""
    return f"{len(hosts)} {job}{plural} ({shown})" if hosts else f"no {job}"


def _same(chiefs: str | None, others: str | None, member: str, name: str) -> bool:
    """Whether two addresses mean one process: a name and its address do, and everybody may call itself localhost."""
    if chiefs is None or others is None or chiefs == others:
        return chiefs == others
    (host, port), (other_host, other_port) = split_address(chiefs), split_address(others)
    if port != other_port:
        return False
    if (member == CHIEF and _is_local(host)) or (member == name and _is_local(other_host)):
        return True
    places, other_places = ({place[0] for _, place in Target(text).endpoints()} for text in (chiefs, others))
    return bool(places & other_places)


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified

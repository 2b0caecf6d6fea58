"""Starts the processes of the tests' jobs: forks them when TensorFlow is imported, which would take most of their time.

A program that reads one JSON text a line and answers with one: `start` forks a process that runs a script, `look` tells
the exit code of one, as the shell gives it, or null. It ends with its input, and all that it started with it.
"""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import signal
import sys

from moxing.framework.flags import FLAGS

_PR_SET_PDEATHSIG = 1
_CLONE_NEWNET = 0x40000000


def _become(order: dict, answers: int) -> None:
    """What a new process does."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if order["network"]:
        with open(order["network"]) as network:
            if libc.setns(network.fileno(), _CLONE_NEWNET):
                os._exit(99)
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(answers)
    os.environ.update(order["environment"])
    os.chdir(order["directory"])
    sys.argv = [order["script"], *order["flags"]]
    FLAGS.reset()


def main() -> None:
    import moxing.tensorflow  # noqa: F401

    # Nothing that a child prints may come among the answers.
    answers = os.dup(1)
    for line in sys.stdin:
        order = json.loads(line)
        if "look" in order:
            pid, status = os.waitpid(order["look"], os.WNOHANG)
            code = None if not pid else os.waitstatus_to_exitcode(status)
            answer = code if code is None or code >= 0 else 128 - code
        else:
            answer = os.fork()
            if answer == 0:
                _become(order, answers)
                runpy.run_path(order["script"], run_name="__main__")
                return
        os.write(answers, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()

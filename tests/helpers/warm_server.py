"""A program that imports TensorFlow once and then forks Python processes on request.

It reads one JSON object a line from standard input and answers each with one JSON value a line. `look` asks for the
exit code of a process, negative for a signal, or null while it runs. Every other object starts a process; the answer
is its pid. The server ends when its input does, and so does everything that it started.

A forked process looks as if it had just been started: it has its own command line, environment and working directory,
nothing is logged yet, and `import moxing.tensorflow` prints the version lines again.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.machinery
import importlib.util
import json
import logging
import os
import runpy
import signal
import sys
import tempfile
from importlib.abc import Loader
from types import ModuleType
from typing import Any

import numpy as np

_PR_SET_PDEATHSIG = 1
_CLONE_NEWNET = 0x40000000
_PACKAGE = "moxing.tensorflow"


class _AnnouncingFinder:
    """Serves the imported `moxing.tensorflow` again, with what its import does to logging."""

    def __init__(self, package: ModuleType) -> None:
        self._package = package

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != _PACKAGE:
            return None
        sys.meta_path.remove(self)
        return importlib.util.spec_from_loader(name, _AnnouncingLoader(self._package), is_package=True)


class _AnnouncingLoader(Loader):
    def __init__(self, package: ModuleType) -> None:
        self._package, self._spec = package, package.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._package

    def exec_module(self, module: ModuleType) -> None:
        from moxing.tensorflow import start_up

        module.__spec__ = self._spec
        module.__loader__ = self._spec.loader
        start_up.announce(module.__version__)


def _import_everything() -> None:
    """Imports what scripts use, and undoes what the imports do to logging."""
    from moxing.tf1 import environment

    environment.import_tensorflow()
    import tf_keras  # noqa: F401
    import tf_slim  # noqa: F401

    loggers = [logging.getLogger(), logging.getLogger("tensorflow")]
    before = [(logger.level, logger.propagate, list(logger.handlers)) for logger in loggers]
    package = importlib.import_module(_PACKAGE)
    for logger, (level, propagate, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.propagate = propagate
        logger.handlers[:] = handlers
    del sys.modules[_PACKAGE]
    sys.meta_path.insert(0, _AnnouncingFinder(package))


def _open_streams(order: dict[str, Any]) -> list[int]:
    """Opens what a process has as standard input, output and error."""
    write = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return [
        os.open(order[name], flags, 0o644)
        for name, flags in (("stdin", os.O_RDONLY), ("stdout", write), ("stderr", write))
    ]


def _become(order: dict[str, Any], answers: int, streams: list[int]) -> None:
    """Makes a forked process look like a new one."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if order["network"]:
        with open(order["network"]) as network:
            if libc.setns(network.fileno(), _CLONE_NEWNET):
                os._exit(99)
    if order["session"]:
        os.setsid()
    os.close(answers)
    for target, descriptor in enumerate(streams):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["directory"])
    # What a new process finds out by itself.
    tempfile.tempdir = None
    np.random.seed()
    # In place of the directory of this program.
    sys.path[0] = os.path.dirname(order["what"]) if order["kind"] == "script" else order["directory"]
    for path in reversed(os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        if path and os.path.abspath(path) not in sys.path:
            sys.path.insert(1, os.path.abspath(path))


def _run(order: dict[str, Any]) -> None:
    """Runs what was asked for: `code`, `script` or the words of the `moxing` command, each with its arguments."""
    from moxing.framework.flags import FLAGS

    kind, what, words = order["kind"], order["what"], order["words"]
    if kind == "moxing":
        from moxing.cli.main import main

        sys.argv = [what, *words]
        FLAGS.reset()
        sys.exit(main())
    sys.argv = [what if kind == "script" else "-c", *words]
    FLAGS.reset()
    if kind == "script":
        runpy.run_path(what, run_name="__main__")
    else:
        module = ModuleType("__main__")
        sys.modules["__main__"] = module
        exec(compile(what, "<string>", "exec"), module.__dict__)


def main() -> None:
    _import_everything()
    # Collections in the children would copy the pages of all that was imported.
    gc.collect()
    gc.freeze()
    # Nothing that a child prints may come between the answers.
    answers = os.dup(1)
    for line in sys.stdin:
        order = json.loads(line)
        if "look" in order:
            pid, status = os.waitpid(order["look"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            streams = _open_streams(order)
            answer = os.fork()
            if answer == 0:
                _become(order, answers, streams)
                _run(order)
                return
            for descriptor in streams:
                os.close(descriptor)
        os.write(answers, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()

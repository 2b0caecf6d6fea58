"""How a command is run: errors in the words of the command line, exit codes, silence of the libraries."""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


def translate(message: str, arguments: Mapping[str, str]) -> str:
    """A message in the words of the command line; what stands in quotes is left as it is.

    Example:
      >>> translate("src_dir='/data/src_dir' is a file: size=3", {'src_dir': 'SRC', 'size=': '--size='})
      "SRC='/data/src_dir' is a file: --size=3"
    """
    if not arguments:
        return message
    names = "|".join(re.escape(name) for name in sorted(arguments, key=len, reverse=True))
    words = re.compile(rf"(?P<quoted>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?<![\w/-])(?P<name>{names})(?:(?<==)|\b)")
    return words.sub(lambda match: match["quoted"] or arguments[match["name"]], message)


def runner(
    command: str, run: Callable[[argparse.Namespace], int], names: Mapping[str, str]
) -> Callable[[argparse.Namespace], int]:
    """A function that runs a command: its errors are one line and exit code 2, and TensorFlow says nothing.

    Args:
      command: its name, for the errors.
      run: does the work and returns the exit code.
      names: what arguments that errors name are called on the command line; see `translate`.

    Example:
      >>> runner('moxing data split', lambda arguments: 0, {})(argparse.Namespace())
      0
    """

    def call(arguments: argparse.Namespace) -> int:
        # The lines with which TensorFlow and the trainer introduce themselves belong to training.
        os.environ.setdefault("MOX_SILENT_MODE", "1")
        import moxing.tensorflow  # noqa: F401  (sets the log levels, which `_plain_log_lines` then changes)

        with _no_native_messages(), _plain_log_lines(command, names):
            return run_reporting(command, run, arguments, names)

    return call


def light_runner(
    command: str, run: Callable[[argparse.Namespace], int], names: Mapping[str, str]
) -> Callable[[argparse.Namespace], int]:
    """The same for a command that needs no TensorFlow, whose import takes seconds.

    Example:
      >>> light_runner('moxing file ls', lambda arguments: 0, {})(argparse.Namespace())
      0
    """
    return lambda arguments: run_reporting(command, run, arguments, names)


def run_reporting(
    command: str, run: Callable[[argparse.Namespace], int], arguments: argparse.Namespace, names: Mapping[str, str]
) -> int:
    """Runs a command and returns its exit code; what goes wrong is one line on standard error.

    Example:
      >>> run_reporting('moxing file ls', lambda arguments: 0, argparse.Namespace(), {})
      0
    """
    try:
        return run(arguments)
    except ValueError as error:
        problem = translate(str(error), names)
    except BrokenPipeError:
        # Whoever read the output has seen enough: `... | head`. Python flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except OSError as error:
        problem = _describe(error, names)
    except KeyboardInterrupt:
        print(f"{command}: interrupted", file=sys.stderr)
        return 130
    line = " ".join(problem.split())
    print(f"{command}: error: {line.encode('utf-8', 'replace').decode()}", file=sys.stderr)
    return 2


def _describe(error: OSError, names: Mapping[str, str]) -> str:
    """The file and what is wrong; an argument that the message begins with is named before its value."""
    file, text = error.filename or "", error.strerror or str(error)
    argument, separator, rest = text.partition(": ")
    if separator and file and argument in names:
        return f"{names[argument]}={file!r}: {translate(rest, names)}"
    return f"{file}: {translate(text, names)}".removeprefix(": ")


@contextmanager
def _no_native_messages() -> Iterator[None]:
    """Drops what native code writes to file descriptor 2, while Python's standard error stays as it is.

    The decoders write a line of their own about every bad image; the commands name it, with the file. As ever,
    `TF_CPP_MIN_LOG_LEVEL=0` in the environment shows such lines.
    """
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0":
        yield
        return
    try:
        original = os.dup(2)
    except OSError:  # the process has no standard error
        yield
        return
    before = sys.stderr
    before.flush()
    with open(os.devnull, "wb") as nowhere, open(original, "w", encoding=before.encoding, errors="replace") as stream:
        try:
            os.dup2(nowhere.fileno(), 2)
            if _descriptor(before) == 2:
                sys.stderr = stream
            yield
        finally:
            sys.stderr.flush()
            sys.stderr = before
            os.dup2(original, 2)


def _descriptor(stream: Any) -> int | None:
    try:
        return int(stream.fileno())
    except (OSError, AttributeError):
        return None


class _CommandLine(logging.Formatter):
    def __init__(self, command: str, names: Mapping[str, str]) -> None:
        super().__init__(f"{command}: warning: %(message)s")
        self._names = names

    def format(self, record: logging.LogRecord) -> str:
        return translate(super().format(record), self._names)


@contextmanager
def _plain_log_lines(command: str, names: Mapping[str, str]) -> Iterator[None]:
    """Warnings of the library appear as lines of this command, and what is only for information not at all."""
    log = logging.getLogger("tensorflow")
    before = log.level, log.propagate, list(log.handlers)
    handler = logging.StreamHandler()
    handler.setFormatter(_CommandLine(command, names))
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.WARNING)
    try:
        yield
    finally:
        log.level, log.propagate, log.handlers = before
        log.setLevel(before[0])

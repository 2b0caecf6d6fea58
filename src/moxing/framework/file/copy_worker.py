"""A process that copies files for another one, and its owner's side of the conversation.

It is asked on its standard input and answers on its standard output, in lines of JSON. The first line has the settings
of `set_auth`, so that keys appear neither on a command line nor in the environment. Every further line is a list of
files to copy; the answer is null, or the error that ended it. The process ends when its input ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, BinaryIO

from moxing.framework.file import errors
from moxing.framework.file.access import Settings
from moxing.framework.file.auth import get_settings, restore_settings
from moxing.framework.file.copying import CopyTask, copy_file
from moxing.framework.file.progress import advance
from moxing.framework.file.responses import StoreResponse

#: So many batches are with the process at a time: the next is there when one is done.
_OUTSTANDING = 2
_KINDS: dict[str, Any] = {
    **{kind.__name__: kind for kind in (errors.MoxFileNotExistsException, errors.MoxFileNameDuplicateException)},
    **{kind.__name__: kind for kind in (errors.MoxFileReadException, errors.MoxFileRespException)},
    **{kind.__name__: kind for kind in (PermissionError, IsADirectoryError, NotADirectoryError, FileNotFoundError)},
}


class CopyWorker:
    """A process that copies, from the outside."""

    def __init__(self, threads: int) -> None:
        # Its search path is ours: the package may have been found in a place that a new interpreter does not know.
        code = f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {__name__} import main; main()"
        self._process = subprocess.Popen(
            # Python ignores what is no text there, such as a pathlib.Path.
            [sys.executable, "-c", code, json.dumps([entry for entry in sys.path if isinstance(entry, str)])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with contextlib.suppress(BrokenPipeError):
            self._send({"settings": get_settings().to_dict(), "threads": threads})

    def _send(self, value: Any) -> None:
        stream = self._process.stdin
        if stream is not None:
            stream.write(json.dumps(value).encode() + b"\n")
            stream.flush()

    def feed(self, take: Callable[[], list[CopyTask] | None], failures: list[BaseException]) -> None:
        """Gives the process batches as long as there are any; what goes wrong is added to `failures`."""
        waiting: deque[tuple[int, int]] = deque()
        try:
            while True:
                while len(waiting) < _OUTSTANDING and (batch := take()):
                    self._send(batch)
                    waiting.append((sum(task.length for task in batch), len(batch)))
                if not waiting:
                    return
                line = self._process.stdout.readline() if self._process.stdout else b""
                if not line:
                    raise OSError(f"a process that copied files ended with code {self._process.wait()}")
                advance(*waiting.popleft())
                if (answer := json.loads(line)) is not None:
                    failures.append(_rebuild(answer))
        except BaseException as error:
            failures.append(error)

    def kill(self) -> None:
        """Ends the process at once."""
        self._process.kill()

    def close(self) -> None:
        """Ends the process when it is done with what it was given."""
        with contextlib.suppress(BrokenPipeError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def _describe(error: BaseException) -> dict[str, Any]:
    """An error in plain values."""
    response = getattr(error, "resp", None)
    return {
        "kind": type(error).__name__,
        "errno": getattr(error, "errno", None),
        "text": getattr(error, "strerror", None) or str(error),
        "filename": getattr(error, "filename", None),
        "resp": vars(response) if isinstance(response, StoreResponse) else None,
    }


def _rebuild(answer: dict[str, Any]) -> OSError:
    kind = _KINDS.get(answer["kind"], OSError)
    text = answer["text"] if kind is not OSError else f"{answer['kind']}: {answer['text']}"
    arguments = (answer["errno"] or 5, text, answer["filename"])
    if issubclass(kind, errors.MoxFileReadException | errors.MoxFileRespException):
        return kind(StoreResponse(**answer["resp"]) if answer["resp"] else None, *arguments)
    return kind(*arguments)


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Copies what it is asked to until the questions end.

    Example:
      >>> import io
      >>> answers = io.BytesIO()
      >>> serve(io.BytesIO(b'{"settings": {}, "threads": 1}\\n[]\\n'), answers)
      >>> answers.getvalue()
      b'null\\n'
    """
    from concurrent.futures import Future, ThreadPoolExecutor

    start = json.loads(questions.readline())
    restore_settings(Settings(**start["settings"]))
    with ThreadPoolExecutor(start["threads"]) as pool, ThreadPoolExecutor(1) as speaker:

        def answer(futures: list[Future[None]]) -> None:
            failed = [error for future in futures if (error := future.exception()) is not None]
            answers.write(json.dumps(_describe(failed[0]) if failed else None).encode() + b"\n")
            answers.flush()

        for line in questions:
            # Answers come in the order of the questions, while the next files are under way already.
            futures = [pool.submit(copy_file, CopyTask(*values)) for values in json.loads(line)]
            speaker.submit(answer, futures)


def main() -> None:
    """Serves the process that started this one."""
    import signal

    # An interrupt from the keyboard is for that process, which ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except BrokenPipeError:
        os._exit(0)

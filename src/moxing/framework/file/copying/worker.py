"""A worker process that copies files, and the object that controls it.

The worker reads requests from standard input and writes responses to standard output, as lines of JSON. The first line
holds the settings of `set_auth`, so that keys appear neither on a command line nor in the environment. Each further
line is a batch of files to copy; the response is null, or the error. The worker ends when its input ends.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, BinaryIO

from moxing.framework.file import errors
from moxing.framework.file.auth import Settings, get_settings, restore_settings
from moxing.framework.file.copying.copy_file import copy_file
from moxing.framework.file.copying.plan import CopyTask
from moxing.framework.file.errors import StoreResponse
from moxing.framework.file.progress import advance
from moxing.framework.file.urls import resolve, url_of
from moxing.framework.util.child_server import serve_parent

#: How many batches a worker has at a time, so that the next is ready when one is done.
_OUTSTANDING_BATCHES = 2
_KINDS: dict[str, Any] = {
    **{kind.__name__: kind for kind in (errors.MoxFileNotExistsException, errors.MoxFileNameDuplicateException)},
    **{kind.__name__: kind for kind in (errors.MoxFileReadException, errors.MoxFileRespException)},
    **{kind.__name__: kind for kind in (PermissionError, IsADirectoryError, NotADirectoryError, FileNotFoundError)},
}


class CopyWorker:
    """Starts and controls a worker process."""

    def __init__(self, threads: int) -> None:
        # It uses our search path: a new interpreter might not find the package.
        code = f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {__name__} import main; main()"
        self._process = subprocess.Popen(
            # Python ignores entries that are not strings, such as a pathlib.Path.
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
        """Sends batches to the worker until there are no more. Adds errors to `failures`."""
        outstanding: deque[tuple[int, int]] = deque()
        try:
            while True:
                while len(outstanding) < _OUTSTANDING_BATCHES and (batch := take()):
                    self._send([_encode(task) for task in batch])
                    outstanding.append((sum(task.length or 0 for task in batch), len(batch)))
                if not outstanding:
                    return
                line = self._process.stdout.readline() if self._process.stdout else b""
                if not line:
                    raise OSError(f"a worker process of a copy ended with code {self._process.wait()}")
                advance(*outstanding.popleft())
                if (answer := json.loads(line)) is not None:
                    failures.append(_decode_error(answer))
        except BaseException as error:
            failures.append(error)

    def kill(self) -> None:
        """Kills the worker."""
        self._process.kill()

    def close(self) -> None:
        """Ends the worker after its last batch."""
        with contextlib.suppress(BrokenPipeError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def _encode_error(error: BaseException) -> dict[str, Any]:
    """Returns an error as JSON values."""
    response = getattr(error, "resp", None)
    return {
        "kind": type(error).__name__,
        "errno": getattr(error, "errno", None),
        "text": getattr(error, "strerror", None) or str(error),
        "filename": getattr(error, "filename", None),
        "resp": vars(response) if isinstance(response, StoreResponse) else None,
    }


def _decode_error(answer: dict[str, Any]) -> OSError:
    kind = _KINDS.get(answer["kind"], OSError)
    text = answer["text"] if kind is not OSError else f"{answer['kind']}: {answer['text']}"
    arguments = (answer["errno"] or 5, text, answer["filename"])
    if issubclass(kind, errors.MoxFileReadException | errors.MoxFileRespException):
        return kind(StoreResponse(**answer["resp"]) if answer["resp"] else None, *arguments)
    return kind(*arguments)


def _encode(task: CopyTask) -> list[Any]:
    return [url_of(task.source), url_of(task.target), task.length, task.concurrency]


def _decode(values: list[Any]) -> CopyTask:
    source, target, length, concurrency = values
    return CopyTask(resolve(source, "src_url"), resolve(target, "dst_url"), length, concurrency)


def serve(requests: BinaryIO, responses: BinaryIO) -> None:
    """Copies batches of files until the requests end.

    Example:
      >>> import io
      >>> responses = io.BytesIO()
      >>> serve(io.BytesIO(b'{"settings": {}, "threads": 1}\\n[]\\n'), responses)
      >>> responses.getvalue()
      b'null\\n'
    """
    from concurrent.futures import Future, ThreadPoolExecutor

    start = json.loads(requests.readline())
    restore_settings(Settings(**start["settings"]))
    with ThreadPoolExecutor(start["threads"]) as pool, ThreadPoolExecutor(1) as responder:

        def respond(futures: list[Future[None]]) -> None:
            failed = [error for future in futures if (error := future.exception()) is not None]
            responses.write(json.dumps(_encode_error(failed[0]) if failed else None).encode() + b"\n")
            responses.flush()

        for line in requests:
            # Responses come in the order of the requests, while the next batch is being copied already.
            futures = [pool.submit(copy_file, _decode(values)) for values in json.loads(line)]
            responder.submit(respond, futures)


def main() -> None:
    """Runs a worker."""
    serve_parent(serve)

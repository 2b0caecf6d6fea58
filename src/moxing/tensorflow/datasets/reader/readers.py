"""Readers of image files: in threads of TensorFlow, or in separate processes."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import weakref
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework.file.reading_process import COUNT, LENGTH
from moxing.tensorflow.datasets.arguments import check_counts

_MAX_RESTARTS = 3


class Reader(ABC):
    """Reads whole files. Python calls `fetch` for many files at a time; `read` builds the operation for one file.

    Args:
      num_readers: the number of files, or groups of files, that are read in parallel.
    """

    def __init__(self, num_readers: int) -> None:
        self.num_readers = num_readers

    #: The number of calls of `fetch` that run in parallel.
    fetchers = 1

    @abstractmethod
    def fetch(self, paths: np.ndarray) -> np.ndarray:
        """Returns the input of `read` for each of `paths`."""

    @abstractmethod
    def read(self, fetched: tf.Tensor) -> tf.Tensor:
        """Returns the content of one file."""


class ParallelReader(Reader):
    """The default: TensorFlow reads `num_readers` files in parallel, in its own threads.

    Example:
      >>> ParallelReader(num_readers=8).num_readers
      8
    """

    def fetch(self, paths: np.ndarray) -> np.ndarray:
        return paths

    def read(self, fetched: tf.Tensor) -> tf.Tensor:
        return tf.io.read_file(fetched)


class AsyncRawGenerator(Reader):
    """Reads in separate processes: for storage with a high latency, and for Python file systems.

    Args:
      num_readers: the number of groups of 64 files that are read in parallel.
      num_processes: the number of processes; by default one per core, at most `num_readers`.

    Example:
      >>> import tempfile
      >>> with tempfile.NamedTemporaryFile() as file:
      ...     _ = file.write(b'content'); file.flush()
      ...     AsyncRawGenerator(num_readers=1).fetch(np.array([file.name.encode()], object)).tolist()
      [b'content']
    """

    def __init__(self, num_readers: int, num_processes: int | None = None) -> None:
        super().__init__(num_readers)
        check_counts(num_processes=num_processes)
        self.fetchers = num_processes or max(1, min(num_readers, os.cpu_count() or 1))
        self._idle: queue.SimpleQueue[_ReadingProcess] = queue.SimpleQueue()
        self._started = 0
        self._lock = threading.Lock()

    def fetch(self, paths: np.ndarray) -> np.ndarray:
        process = self._take()
        try:
            contents = process.read([bytes(path) for path in paths])
        finally:
            self._idle.put(process)
        # A file that cannot be read is returned as empty, which `read` rejects; the reason is found when it is logged.
        return np.array([content or b"" for content in contents], object)

    def read(self, fetched: tf.Tensor) -> tf.Tensor:
        return refuse_empty(fetched)

    def _take(self) -> _ReadingProcess:
        with self._lock:
            if self._idle.empty() and self._started < self.fetchers:
                self._started += 1
                return _ReadingProcess()
        return self._idle.get()


def refuse_empty(content: tf.Tensor) -> tf.Tensor:
    """Returns `content`; fails if it is empty, which stands for a file that could not be read."""
    not_empty = tf.raw_ops.Assert(condition=tf.strings.length(content) > 0, data=["empty, or could not be read"])
    with tf.control_dependencies([not_empty]):
        return tf.identity(content)


class _ReadingProcess:
    """One reading process; started on first use, and restarted if it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._restarts = 0

    def read(self, paths: list[bytes]) -> list[bytes | None]:
        """Returns the contents of `paths`; None for a file that cannot be read."""
        while True:
            try:
                contents = self._ask(paths)
                self._restarts = 0
                return contents
            except (OSError, EOFError) as error:
                code = self._process.wait() if self._process else None
                self._process = None
                self._restarts += 1
                if self._restarts > _MAX_RESTARTS:
                    raise RuntimeError(
                        f"A reading process has died {self._restarts} times (exit code {code})."
                    ) from error
                tf.logging.warning("A reading process has died (exit code %s); restarting it.", code)

    def _ask(self, paths: list[bytes]) -> list[bytes | None]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "moxing.framework.file.reading_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            # Not at exit: the reading process ends by itself, and TensorFlow may read until then.
            weakref.finalize(self, _end, self._process).atexit = False
        questions, answers = self._process.stdin, self._process.stdout
        if questions is None or answers is None:
            raise EOFError("no pipes")
        questions.write(COUNT.pack(len(paths)) + b"".join(COUNT.pack(len(path)) + path for path in paths))
        questions.flush()
        return [self._content(answers) for _ in paths]

    def _content(self, answers: Any) -> bytes | None:
        header = answers.read(LENGTH.size)
        if len(header) < LENGTH.size:
            raise EOFError("the process ended")
        length = LENGTH.unpack(header)[0]
        if length < 0:
            return None
        content: bytes = answers.read(length)
        if len(content) < length:
            raise EOFError("the process ended")
        return content


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                continue
    process.wait()


def make_reader(reader_class: Any, num_readers: int, reader_kwargs: dict[str, Any] | None) -> Reader:
    """Returns the reader for the arguments of a dataset.

    Example:
      >>> type(make_reader(None, 8, None)).__name__
      'ParallelReader'
    """
    chosen = ParallelReader if reader_class is None else reader_class
    if not (isinstance(chosen, type) and issubclass(chosen, Reader)):
        raise ValueError(f"reader_class={reader_class!r}: expected mox.AsyncRawGenerator or ParallelReader.")
    check_counts(num_readers=num_readers)
    try:
        return chosen(num_readers, **(reader_kwargs or {}))
    except TypeError as error:
        raise ValueError(
            f"reader_kwargs={reader_kwargs!r}: {chosen.__name__} does not accept them ({error})."
        ) from None

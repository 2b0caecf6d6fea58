"""The log of samples that could not be read.

`mox.run` opens one log around `input_fn`, and every dataset created there reports its bad samples to it. The log counts
them, writes them to `bad_samples.jsonl`, and ends the run when there are too many. A dataset that is created outside a
run has a log of its own, which writes no file.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError

FILE_NAME = "bad_samples.jsonl"

_MAX_LISTED = 10  # bad samples in an error message; the file lists all of them


@dataclass(frozen=True)
class BadSample:
    """A sample that was skipped.

    Attributes:
      file: the path of the file that holds the sample.
      offset: for a record, the byte at which it begins in the file.
      reason: why the sample cannot be used.
    """

    file: str
    offset: int | None
    reason: str

    def __str__(self) -> str:
        # TensorFlow drops messages that are not valid UTF-8, and file names may not be.
        file = self.file.encode("utf-8", "backslashreplace").decode()
        location = file if self.offset is None else f"{file} at byte {self.offset}"
        return f"{location}: {self.reason}"


class TooManyBadSamplesError(RuntimeError):
    """More samples are bad than `--max_bad_samples` allows."""


class NoUsableSamplesError(ValueError):
    """None of the samples of a dataset can be read."""


def allowed_bad_samples(read: int) -> int:
    """Returns how many bad samples `--max_bad_samples` allows after `read` samples.

    Example:
      >>> allowed_bad_samples(100), allowed_bad_samples(5000)
      (1, 5)
    """
    text = str(FLAGS.get("max_bad_samples")).strip()
    try:
        if text.endswith("%"):
            share = float(text[:-1])
            if 0 <= share <= 100:
                return max(1, int(read * share / 100)) if share else 0
        elif int(text) >= 0:
            return int(text)
    except ValueError:
        pass
    raise FlagError(f"--max_bad_samples={text!r}: expected a count from 0, such as 10, or a percentage such as 0.5%.")


class BadSampleLog:
    """Collects the bad samples of a run.

    Args:
      directory: the directory of `bad_samples.jsonl`; None writes no file.

    Attributes:
      failure: the error that ends the run, or None.

    Example:
      >>> log = BadSampleLog(None)
      >>> log.add(BadSample('a.jpg', None, 'empty file'), read=10)
      >>> [str(sample) for sample in log.samples]
      ['a.jpg: empty file']
    """

    def __init__(self, directory: str | None) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._samples: dict[tuple[str, int | None], BadSample] = {}
        self._written: set[tuple[str, int | None]] | None = None
        self.failure: Exception | None = None

    @property
    def samples(self) -> tuple[BadSample, ...]:
        """The bad samples so far, each once."""
        return tuple(self._samples.values())

    def add(self, sample: BadSample, read: int) -> None:
        """Adds a bad sample.

        Args:
          sample: the sample. One that is in the log already is ignored.
          read: how many samples were read so far, for `--max_bad_samples` as a percentage.

        Raises:
          TooManyBadSamplesError: there are more bad samples than `--max_bad_samples` allows.
        """
        key = (sample.file, sample.offset)
        with self._lock:
            if isinstance(self.failure, TooManyBadSamplesError):
                self.check()  # the run is ending: ignore samples that were prefetched
            if key in self._samples:
                return
            self._samples[key] = sample
            self._write(key, sample)
            allowed = allowed_bad_samples(read)
            if len(self._samples) > allowed:
                self.failure = TooManyBadSamplesError(self._too_many(read, allowed))
                raise self.failure
        tf.logging.warning("Skipped a bad sample: %s", sample)

    def check(self) -> None:
        """Raises the error that ends the run, if there is one."""
        if self.failure is not None:
            # Each raise appends to the traceback; drop it, or it grows to hundreds of lines.
            raise self.failure.with_traceback(None) from None

    def fail(self, error: Exception) -> None:
        """Keeps the first error that ends the run. A thread of the dataset cannot raise it to the user."""
        self.failure = self.failure or error

    def report(self) -> str | None:
        """Returns the summary for the end of the run, or None without bad samples."""
        if not self._samples:
            return None
        count = "1 bad sample" if len(self._samples) == 1 else f"{len(self._samples)} bad samples"
        return f"Skipped {count}:\n{self._list()}"

    def _list(self) -> str:
        lines = [f"  {sample}" for sample in list(self._samples.values())[:_MAX_LISTED]]
        if len(self._samples) > _MAX_LISTED:
            lines.append(f"  and {len(self._samples) - _MAX_LISTED} more")
        if self._directory:
            lines.append(f"See {os.path.join(self._directory, FILE_NAME)} for the full list.")
        return "\n".join(lines)

    def _too_many(self, read: int, allowed: int) -> str:
        if len(self._samples) >= read:
            advice = "No sample could be read so far: check what the files have in common."
        else:
            advice = (
                f"Repair or remove them, or allow more, for example with --max_bad_samples={10 * len(self._samples)}."
            )
        return (
            f"{len(self._samples)} bad sample{'s' * (len(self._samples) > 1)} among {read} samples read; "
            f"--max_bad_samples={FLAGS.get('max_bad_samples')} allows {allowed}:\n{self._list()}\n{advice}"
        )

    def _write(self, key: tuple[str, int | None], sample: BadSample) -> None:
        if self._directory is None:
            return
        path = os.path.join(self._directory, FILE_NAME)
        if self._written is None:
            self._written = set(_listed(path))
        if key in self._written:
            return
        self._written.add(key)
        os.makedirs(self._directory, exist_ok=True)
        line = json.dumps(asdict(sample), ensure_ascii=False) + "\n"
        with open(path, "ab+") as file:
            # Start a new line after one that was cut off.
            if file.tell() and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":
                file.write(b"\n")
            file.write(line.encode("utf-8", "surrogateescape"))
            file.flush()
            os.fsync(file.fileno())


def _listed(path: str) -> Iterator[tuple[str, int | None]]:
    """Yields the samples that an earlier run listed; skips lines that were cut off."""
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            try:
                entry = json.loads(line)
                yield entry["file"], entry["offset"]
            except (ValueError, KeyError, TypeError):
                continue


_current: ContextVar[BadSampleLog | None] = ContextVar("moxing_bad_sample_log", default=None)


@contextmanager
def open_bad_sample_log(directory: str | None) -> Iterator[BadSampleLog]:
    """Opens the log of a run: datasets that are created inside the `with` block report to it.

    Args:
      directory: the directory of `bad_samples.jsonl`; None writes no file.
    """
    allowed_bad_samples(0)  # report a wrong flag now, not at the first bad sample
    log = BadSampleLog(directory)
    token = _current.set(log)
    try:
        yield log
    finally:
        _current.reset(token)


def current_bad_sample_log() -> BadSampleLog:
    """Returns the log of the run that is being built, or a new log."""
    return _current.get() or BadSampleLog(None)

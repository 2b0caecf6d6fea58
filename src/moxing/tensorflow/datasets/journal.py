"""What the data sets of a run tell it: samples that could not be used, and the names of the classes.

`mox.run` opens a journal around `input_fn`; every data set that is made there writes into it. Outside a run a data set
has a journal of its own, which only logs.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS, FlagError

FILE_NAME = "bad_samples.jsonl"

_LISTED = 10  # bad samples that an error message lists; the file has all


@dataclass(frozen=True)
class BadSample:
    """A sample that was left out.

    Attributes:
      file: its file.
      offset: where it begins in the file, for a record.
      reason: what is wrong with it.
    """

    file: str
    offset: int | None
    reason: str

    def __str__(self) -> str:
        # TensorFlow drops a message that is not UTF-8, as a file name may be.
        file = self.file.encode("utf-8", "backslashreplace").decode()
        place = file if self.offset is None else f"{file} at byte {self.offset}"
        return f"{place}: {self.reason}"


class TooManyBadSamplesError(RuntimeError):
    """More samples were unreadable than `--max_bad_samples` allows."""


def allowed_bad_samples(read: int) -> int:
    """How many bad samples the flag `max_bad_samples` allows among `read` ones.

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
    raise FlagError(f"--max_bad_samples={text!r}: expected a number from 0, such as 10, or a share such as 0.5%.")


class Journal:
    """Keeps the bad samples of a run and the names of its classes.

    Args:
      directory: where `bad_samples.jsonl` is written; None: nowhere.

    Example:
      >>> journal = Journal(None)
      >>> journal.add_bad(BadSample('a.jpg', None, 'empty file'), read=10)
      >>> [str(sample) for sample in journal.bad]
      ['a.jpg: empty file']
    """

    def __init__(self, directory: str | None) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._bad: dict[tuple[str, int | None], BadSample] = {}
        self._written: set[tuple[str, int | None]] | None = None
        self.failure: Exception | None = None
        self.labels: dict[int, str] | None = None

    @property
    def bad(self) -> tuple[BadSample, ...]:
        """The bad samples that were met, each once."""
        return tuple(self._bad.values())

    def add_bad(self, sample: BadSample, read: int) -> None:
        """Notes a bad sample; raises when there are too many among the `read` ones."""
        key = (sample.file, sample.offset)
        with self._lock:
            if isinstance(self.failure, TooManyBadSamplesError):
                self.check()  # what the data set reads ahead is no news
            if key in self._bad:
                return
            self._bad[key] = sample
            self._write(key, sample)
            allowed = allowed_bad_samples(read)
            if len(self._bad) > allowed:
                self.failure = TooManyBadSamplesError(self._too_many(read, allowed))
                raise self.failure
        tf.logging.warning("Left out a bad sample: %s", sample)

    def check(self) -> None:
        """Raises what ended the run, if anything did."""
        if self.failure is not None:
            # Every time it is raised, an exception takes along where from: hundreds of lines, in the end.
            raise self.failure.with_traceback(None) from None

    def fail(self, error: Exception) -> None:
        """Notes an error that ends the run; the data set's own thread cannot raise it to the user."""
        self.failure = self.failure or error

    def add_labels(self, labels: Mapping[int, str]) -> None:
        """Notes the names of the classes by number."""
        if self.labels is not None and self.labels != dict(labels):
            tf.logging.warning(
                "The data sets of input_fn number their classes differently: %s and %s. Give them the same labels.txt.",
                self.labels,
                dict(labels),
            )
            return
        self.labels = dict(labels)

    def report(self) -> str | None:
        """The bad samples for the end of a run, or None if there were none."""
        if not self._bad:
            return None
        count = "1 bad sample was" if len(self._bad) == 1 else f"{len(self._bad)} bad samples were"
        return f"{count} left out:\n{self._list()}"

    def _list(self) -> str:
        lines = [f"  {sample}" for sample in list(self._bad.values())[:_LISTED]]
        if len(self._bad) > _LISTED:
            lines.append(f"  and {len(self._bad) - _LISTED} more")
        if self._directory:
            lines.append(f"All are listed in {os.path.join(self._directory, FILE_NAME)}.")
        return "\n".join(lines)

    def _too_many(self, read: int, allowed: int) -> str:
        if len(self._bad) >= read:
            advice = "Not one sample was good so far: look for what they have in common."
        else:
            advice = f"Repair or remove them, or allow more, for example with --max_bad_samples={10 * len(self._bad)}."
        return (
            f"{len(self._bad)} bad sample{'s' * (len(self._bad) > 1)} among {read} that were read; "
            f"--max_bad_samples={FLAGS.get('max_bad_samples')} allows {allowed} of so many:\n{self._list()}\n{advice}"
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
            # After a line that was cut, begin a new one.
            if file.tell() and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":
                file.write(b"\n")
            file.write(line.encode("utf-8", "surrogateescape"))
            file.flush()
            os.fsync(file.fileno())


def _listed(path: str) -> Iterator[tuple[str, int | None]]:
    """The samples that an earlier run has listed; a line that was cut is passed over."""
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            try:
                entry = json.loads(line)
                yield entry["file"], entry["offset"]
            except (ValueError, KeyError, TypeError):
                continue


_journal: ContextVar[Journal | None] = ContextVar("moxing_journal", default=None)


@contextmanager
def open_journal(directory: str | None) -> Iterator[Journal]:
    """Inside, data sets that are made write into one journal."""
    allowed_bad_samples(0)  # a wrong flag is to show now, not at the first bad sample
    journal = Journal(directory)
    token = _journal.set(journal)
    try:
        yield journal
    finally:
        _journal.reset(token)


def current_journal() -> Journal:
    """The journal of the run that is being built, or a new one."""
    return _journal.get() or Journal(None)


def guarded(journal: Journal, function: Callable[..., object]) -> Callable[..., object]:
    """`function` for a data set's thread: what it raises is noted in the journal before it is lost in TensorFlow."""

    @tf.autograph.experimental.do_not_convert
    def call(*arguments: object) -> object:
        try:
            return function(*arguments)
        except Exception as error:
            journal.fail(error)
            raise

    return call

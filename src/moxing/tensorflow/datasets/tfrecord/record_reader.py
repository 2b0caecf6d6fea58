"""Reads records of TFRecord files by number."""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Protocol, TypeAlias

import numpy as np

from moxing.tensorflow.datasets.tfrecord.checksums import FOOTER_BYTES, HEADER_BYTES
from moxing.tensorflow.datasets.tfrecord.record_files import FRAME_BYTES, is_checksum_right, read_exactly

Numbers: TypeAlias = "Sequence[int] | np.ndarray"

_MAX_REASONS = 10_000
#: Ranges of a file with a smaller gap between them are read with one request.
_MAX_GAP = 1 << 16


class RecordLocations(Protocol):
    """Says where each record is."""

    def locate(self, number: int) -> tuple[str, int, int]:
        """Returns the file of a record, the byte at which it begins, and the number of bytes of its data."""


class RecordReader:
    """Reads records by number, in any order. Thread-safe.

    Args:
      index: the locations of the records.
      open_files: the number of files to keep open.
    """

    def __init__(self, index: RecordLocations, open_files: int = 256) -> None:
        if open_files < 1:
            raise ValueError(f"open_files={open_files}: expected 1 or more.")
        self._index = index
        self._files = _OpenFiles(open_files)
        self._reasons: OrderedDict[int, str] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, numbers: Numbers) -> list[bytes | None]:
        """Returns the data of these records, None for one that cannot be read or whose checksum is wrong.

        Raises:
          IndexError: there is no such number.
        """
        return [self._read_one(int(number)) for number in numbers]

    def reason(self, number: int) -> str:
        """Returns why `read` returned None for a record; empty if it can be read."""
        with self._lock:
            known = self._reasons.get(number)
        if known is not None:
            return known
        # Only the last failures are kept.
        return "" if self._read_one(number) is not None else self.reason(number)

    def will_need(self, numbers: Numbers) -> None:
        """Lets the system read these records ahead. Does not wait."""
        if not hasattr(os, "posix_fadvise"):
            return
        for path, begin, end in self._ranges(numbers):
            # Only advice: an error is reported when the record is read.
            with suppress(OSError):
                opened = self._files.get(path)
                os.posix_fadvise(opened.descriptor, begin, end - begin, os.POSIX_FADV_WILLNEED)

    def _ranges(self, numbers: Numbers) -> Iterator[tuple[str, int, int]]:
        """Yields the ranges of files that contain these records, neighbours joined."""
        return ((path, begin, end) for path, begin, end, _ in join_neighbours(self._index, numbers))

    def _read_one(self, number: int) -> bytes | None:
        path, offset, length = self._index.locate(number)
        try:
            return self._fetch(path, offset, length)
        except BadRecordError as error:
            self._keep_reason(number, error)
            return None

    def _keep_reason(self, number: int, error: BadRecordError) -> None:
        with self._lock:
            self._reasons[number] = f"record {number} {error}"
            self._reasons.move_to_end(number)
            if len(self._reasons) > _MAX_REASONS:
                self._reasons.popitem(last=False)

    def _fetch(self, path: str, offset: int, length: int) -> bytes:
        try:
            opened = self._files.get(path)
            record = read_exactly(opened.descriptor, FRAME_BYTES + length, offset)
        except OSError as error:
            # A stale handle (network file systems) would fail forever.
            self._files.forget(path)
            raise BadRecordError(f"cannot be read: {error.strerror or error}") from error
        return check_record(record, length)


class BadRecordError(Exception):
    """A record cannot be read; the message says why."""


def check_record(record: bytes, length: int) -> bytes:
    """Checks the bytes of a record, with header and checksums, and returns its data.

    Raises:
      BadRecordError: it is not a record of this length, or it is damaged.

    Example:
      >>> check_record(b'', 5)
      Traceback (most recent call last):
      ...
      moxing.tensorflow.datasets.tfrecord.record_reader.BadRecordError: is no longer there: ...
    """
    if len(record) < FRAME_BYTES + length or int.from_bytes(record[:8], "little") != length:
        raise BadRecordError("is no longer there: the file changed after it was indexed")
    data = record[HEADER_BYTES:-FOOTER_BYTES]
    if not is_checksum_right(data, record[-FOOTER_BYTES:]):
        raise BadRecordError("is damaged: the checksum of its data is wrong")
    return data


def join_neighbours(
    index: RecordLocations, numbers: Numbers, most: int = sys.maxsize
) -> Iterator[tuple[str, int, int, list[int]]]:
    """Yields the ranges of files that contain these records: file, begin, end, records.

    Args:
      index: the locations of the records.
      numbers: the records.
      most: neighbours are joined up to this number of bytes.
    """
    path, begin, end = "", 0, 0
    held: list[int] = []
    for number in sorted({int(number) for number in numbers}):
        next_path, offset, length = index.locate(number)
        is_near = next_path == path and begin <= offset <= end + _MAX_GAP
        if not is_near or offset + FRAME_BYTES + length - begin > most:
            if held:
                yield path, begin, end, held
            path, begin, held = next_path, offset, []
        end = offset + FRAME_BYTES + length
        held.append(number)
    if held:
        yield path, begin, end, held


class _OpenFile:
    """A file that is closed with its last reference: another thread may still read it when it leaves the cache."""

    def __init__(self, path: str) -> None:
        self.descriptor = -1
        self.descriptor = os.open(path, os.O_RDONLY)

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


class _OpenFiles:
    """The most recently used files."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._opened: OrderedDict[str, _OpenFile] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: str) -> _OpenFile:
        with self._lock:
            opened = self._opened.get(path)
            if opened is not None:
                self._opened.move_to_end(path)
                return opened
        # Not under the lock: opening may take long on a network file system.
        opened = _OpenFile(path)
        with self._lock:
            opened = self._opened.setdefault(path, opened)
            self._opened.move_to_end(path)
            oldest = self._opened.popitem(last=False) if len(self._opened) > self._limit else None
        del oldest
        return opened

    def forget(self, path: str) -> None:
        with self._lock:
            self._opened.pop(path, None)

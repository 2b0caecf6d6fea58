"""The records of a set of TFRecord files by number: where they are, and reading them in any order.

The files are walked through once. What is found is kept beside the data, so that the next run begins at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework.file.paths import local_path
from moxing.framework.file.replacing import replace_file
from moxing.tensorflow.datasets.tfrecord.record_files import (
    FRAME_BYTES,
    INDEX_DIRECTORY,
    Damage,
    RecordScan,
    is_checksum_right,
    read_exactly,
    scan,
)
from moxing.tf1.records import FOOTER_BYTES, HEADER_BYTES

Numbers: TypeAlias = "Sequence[int] | np.ndarray"

_SCAN_THREADS = 16
_SECONDS_BEFORE_BAR = 1.0
_SECONDS_BETWEEN_UPDATES = 0.2
_DAMAGES_IN_LOG = 5

_CACHE_VERSION = 1

_REASONS_KEPT = 10_000
#: Wanted ranges of a file with a smaller gap between them are one request.
_GAP_READ_OVER = 1 << 16


class RecordIndex:
    """Where each record of a list of files is. Records are numbered from 0, file after file.

    Args:
      paths: local files.
      scans: for each file what `scan` found in it.

    Attributes:
      paths: the files.
      counts: the number of records in each, int64.
      damages: the places in them without records.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     with tf.python_io.TFRecordWriter(folder + '/a') as writer:
      ...         for data in (b'first', b'second'):
      ...             writer.write(data)
      ...     index = RecordIndex.build([folder + '/a'])
      ...     len(index), index.locate(1)[1:], RecordReader(index).read([1, 0])
      (2, (21, 6), [b'second', b'first'])
    """

    def __init__(self, paths: Sequence[str], scans: Sequence[RecordScan]) -> None:
        nothing: np.ndarray = np.zeros(0, np.int64)
        self.paths = tuple(paths)
        self.counts = np.array([len(found.offsets) for found in scans], np.int64)
        self.damages = tuple(damage for found in dict.fromkeys(scans) for damage in found.damages)
        self._ends = np.cumsum(self.counts).tolist()
        self._offsets = np.concatenate([nothing, *(found.offsets for found in scans)])
        self._lengths = np.concatenate([nothing, *(found.lengths for found in scans)])

    @classmethod
    def build(cls, paths: Sequence[str], show_progress: bool = True, cache_dir: str | None = None) -> RecordIndex:
        """Finds the records of these files, or takes what an earlier run found if the files are unchanged since.

        Args:
          paths: local files. One that is in the list twice counts twice.
          show_progress: show a bar on the terminal if it takes longer than a second.
          cache_dir: where the index is kept; by default beside the first file, or in the user's cache directory where
            that cannot be written.

        Raises:
          ValueError: there is no record in any of the files, or one is compressed.
          OSError: a file cannot be read.
        """
        local = [local_path(path, "paths") for path in paths]
        if not local:
            raise ValueError("paths=[]: expected at least one TFRecord file.")
        unique = sorted(set(local))
        cache = _IndexCache(unique, None if cache_dir is None else local_path(cache_dir, "cache_dir"))
        scans = cache.load()
        missing = [path for path in unique if path not in scans]
        if missing:
            tf.logging.info(
                "Automatically extracting num_samples from tfrecord. The headers in %d file(s) are read, which takes "
                "some time if the data set is large; the result is kept for the next run.",
                len(missing),
            )
            scans.update(scan_all({path: os.path.getsize(path) for path in missing}, show_progress))
        index = cls(local, [scans[path] for path in local])
        if not len(index):
            raise ValueError(f"There is no record in {name_files(unique)}{first_damage(index)}.")
        if missing:
            cache.save(scans)
            tf.logging.info("Found %d records in %d tfrecord file(s).", len(index), len(local))
        warn_of_damages(index.damages)
        return index

    def __len__(self) -> int:
        return len(self._offsets)

    def reader(self) -> RecordReader:
        """Reads the records."""
        return RecordReader(self)

    def locate(self, number: int) -> tuple[str, int, int]:
        """The file of a record, where it begins in it, and how many bytes its data has.

        Raises:
          IndexError: there is no such number.
        """
        if not 0 <= number < len(self._offsets):
            raise IndexError(f"number={number}: the records are numbered from 0 to {len(self) - 1}.")
        path = self.paths[bisect_right(self._ends, number)]
        return path, int(self._offsets[number]), int(self._lengths[number])


class RecordReader:
    """Reads records by number, in any order, from many threads at once.

    Args:
      index: where they are.
      open_files: how many files are kept open.
    """

    def __init__(self, index: RecordIndex, open_files: int = 256) -> None:
        if open_files < 1:
            raise ValueError(f"open_files={open_files}: expected 1 or more.")
        self._index = index
        self._files = _OpenFiles(open_files)
        self._reasons: OrderedDict[int, str] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, numbers: Numbers) -> list[bytes | None]:
        """The data of these records, None for one that cannot be read or whose checksum is wrong.

        Raises:
          IndexError: there is no such number.
        """
        return [self._read_one(int(number)) for number in numbers]

    def reason(self, number: int) -> str:
        """Why `read` returned None for a record; empty if it can be read."""
        with self._lock:
            known = self._reasons.get(number)
        if known is not None:
            return known
        # Only the last failures are kept in mind.
        return "" if self._read_one(number) is not None else self.reason(number)

    def will_need(self, numbers: Numbers) -> None:
        """Tells the system that these records are wanted soon, so that it begins to read them; does not wait."""
        if not hasattr(os, "posix_fadvise"):
            return
        for path, begin, end in self._ranges(numbers):
            # An advice: what is wrong with the file shows when it is read.
            with suppress(OSError):
                opened = self._files.get(path)
                os.posix_fadvise(opened.descriptor, begin, end - begin, os.POSIX_FADV_WILLNEED)

    def _ranges(self, numbers: Numbers) -> Iterator[tuple[str, int, int]]:
        """The parts of files that hold these records, neighbours joined."""
        return ((path, begin, end) for path, begin, end, _ in join_neighbours(self._index, numbers))

    def _read_one(self, number: int) -> bytes | None:
        path, offset, length = self._index.locate(number)
        try:
            return self._fetch(path, offset, length)
        except BadRecordError as error:
            self._note(number, error)
            return None

    def _note(self, number: int, error: BadRecordError) -> None:
        with self._lock:
            self._reasons[number] = f"record {number} {error}"
            self._reasons.move_to_end(number)
            if len(self._reasons) > _REASONS_KEPT:
                self._reasons.popitem(last=False)

    def _fetch(self, path: str, offset: int, length: int) -> bytes:
        try:
            opened = self._files.get(path)
            record = read_exactly(opened.descriptor, FRAME_BYTES + length, offset)
        except OSError as error:
            # A handle that went stale (network file systems) would fail for ever.
            self._files.forget(path)
            raise BadRecordError(f"cannot be read: {error.strerror or error}") from error
        return check_record(record, length)


class BadRecordError(Exception):
    """A record cannot be had; the message says why."""


def check_record(record: bytes, length: int) -> bytes:
    """The data of a record that was read with what is around it.

    Raises:
      BadRecordError: It is not a record of this length, or damaged.

    Example:
      >>> check_record(b'', 5)
      Traceback (most recent call last):
      ...
      moxing.tensorflow.datasets.tfrecord.record_index.BadRecordError: is no longer there, ...
    """
    if len(record) < FRAME_BYTES + length or int.from_bytes(record[:8], "little") != length:
        raise BadRecordError("is no longer there, the file was changed after it was indexed")
    data = record[HEADER_BYTES:-FOOTER_BYTES]
    if not is_checksum_right(data, record[-FOOTER_BYTES:]):
        raise BadRecordError("is damaged, the checksum of its data is wrong")
    return data


def join_neighbours(
    index: RecordIndex, numbers: Numbers, most: int = sys.maxsize
) -> Iterator[tuple[str, int, int, list[int]]]:
    """The parts of files that hold these records, neighbours joined up to `most` bytes: file, begin, end, records."""
    path, begin, end = "", 0, 0
    held: list[int] = []
    for number in sorted({int(number) for number in numbers}):
        next_path, offset, length = index.locate(number)
        is_near = next_path == path and begin <= offset <= end + _GAP_READ_OVER
        if not is_near or offset + FRAME_BYTES + length - begin > most:
            if held:
                yield path, begin, end, held
            path, begin, held = next_path, offset, []
        end = offset + FRAME_BYTES + length
        held.append(number)
    if held:
        yield path, begin, end, held


class _OpenFile:
    """A file that is closed when nobody holds it any more: another thread may be reading when it leaves the cache."""

    def __init__(self, path: str) -> None:
        self.descriptor = -1
        self.descriptor = os.open(path, os.O_RDONLY)

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


class _OpenFiles:
    """The files that were used last."""

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


class _Stopped(Exception):
    """Ends the scans that still run after one failed or the user interrupted."""


def scan_all(
    sizes: Mapping[str, int],
    show_progress: bool,
    scan_one: Callable[[str, Callable[[int], object]], RecordScan] | None = None,
    threads: int = _SCAN_THREADS,
) -> dict[str, RecordScan]:
    """Finds the records of files, some at a time, with a bar if it takes long.

    Args:
      sizes: the files with their sizes.
      show_progress: whether there may be a bar.
      scan_one: finds those of one file, by default `scan`; it is given a function to tell how many more bytes are done.
      threads: how many files at a time.
    """
    total = sum(sizes.values())
    lock, stop, done = threading.Lock(), threading.Event(), 0

    def advance(count: int) -> None:
        nonlocal done
        if stop.is_set():
            raise _Stopped
        with lock:
            done += count

    with ThreadPoolExecutor(min(threads, len(sizes)), "moxing-scan") as pool:
        try:
            futures = {path: pool.submit(scan_one or scan, path, advance) for path in sizes}
            state = wait(futures.values(), _SECONDS_BEFORE_BAR, FIRST_EXCEPTION)
            if state.not_done and show_progress and sys.stderr.isatty():
                with _progress_bar(total) as show:
                    _wait_showing(futures.values(), lambda: show(done))
            wait(futures.values(), None, FIRST_EXCEPTION)
            _raise_first(futures.values())
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
    return {path: future.result() for path, future in futures.items()}


def _wait_showing(futures: Collection[Future[RecordScan]], show: Callable[[], object]) -> None:
    pending = set(futures)
    while pending and not any(future.done() and future.exception() for future in futures):
        pending = wait(pending, _SECONDS_BETWEEN_UPDATES, FIRST_EXCEPTION).not_done
        show()


def _raise_first(futures: Collection[Future[RecordScan]]) -> None:
    for future in futures:
        if future.done():
            future.result()


@contextmanager
def _progress_bar(total: int) -> Iterator[Callable[[int], object]]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [TextColumn("[bold]{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("Counting records", total=total)
        yield lambda done: display.update(task, completed=min(done, total))


class _IndexCache:
    """What scans of a set of files found, in one file. A file that has changed since is not taken from it."""

    def __init__(self, paths: Sequence[str], cache_dir: str | None) -> None:
        self._paths = list(paths)
        absolute = [os.path.abspath(path) for path in paths]
        beside = os.path.dirname(absolute[0])
        # Relative names, so that the index stays good when the directory is moved or mounted elsewhere.
        self._names = [os.path.relpath(path, beside) for path in absolute]
        if cache_dir is not None:
            self._places = [os.path.join(cache_dir, index_name(absolute))]
        else:
            user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
            self._places = [
                os.path.join(beside, INDEX_DIRECTORY, index_name(self._names)),
                os.path.join(user, "moxing", "index", index_name(absolute)),
            ]

    def load(self) -> dict[str, RecordScan]:
        """The scans of those files that have not changed, by path."""
        valid: dict[str, RecordScan] = {}
        for place in self._places:
            known = _load_scans(place, dict(zip(self._names, self._paths, strict=True)))
            for path in self._paths:
                if path in known and path not in valid:
                    status = os.stat(path)
                    if (status.st_size, status.st_mtime_ns) == (known[path].size, known[path].mtime_ns):
                        valid[path] = known[path]
            if len(valid) == len(self._paths):
                break
        return valid

    def save(self, scans: Mapping[str, RecordScan]) -> None:
        """Keeps the scans in the first place that can be written."""
        arrays = scans_to_arrays(self._names, [scans[path] for path in self._paths])
        for place in self._places:
            try:
                os.makedirs(os.path.dirname(place), exist_ok=True)
                replace_file(place, "cache_dir", lambda stream: np.savez(stream, **arrays))
                return
            except OSError as error:
                tf.logging.debug("The index of the tfrecord files cannot be kept in %s: %s", place, error)


def index_name(names: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(names).encode("utf-8", "surrogateescape")).hexdigest()[:20] + ".npz"


def scans_to_arrays(names: Sequence[str], scans: Sequence[RecordScan]) -> dict[str, Any]:
    damages = [[(damage.offset, damage.length, damage.reason) for damage in found.damages] for found in scans]
    return {
        "version": np.array(_CACHE_VERSION),
        "names": np.array(json.dumps(list(names))),
        "sizes": np.array([found.size for found in scans], np.int64),
        "mtimes_ns": np.array([found.mtime_ns for found in scans], np.int64),
        "counts": np.array([len(found.offsets) for found in scans], np.int64),
        "offsets": np.concatenate([found.offsets for found in scans]),
        "lengths": np.concatenate([found.lengths for found in scans]),
        "damages": np.array(json.dumps(damages)),
    }


def _load_scans(place: str, paths: Mapping[str, str]) -> dict[str, RecordScan]:
    """What the file `place` holds, by path (`paths` has it for each name); nothing if it is damaged."""
    try:
        with open(place, "rb") as stream, np.load(stream, allow_pickle=False) as stored:
            return scans_from_arrays({key: stored[key] for key in stored.files}, paths)
    except FileNotFoundError:
        return {}
    except Exception as error:  # Damage shows in many ways, and each means no more than another scan.
        tf.logging.debug("The index of tfrecord files in %s is not usable: %s", place, error)
        return {}


def scans_from_arrays(arrays: Mapping[str, np.ndarray], paths: Mapping[str, str]) -> dict[str, RecordScan]:
    if int(arrays["version"]) != _CACHE_VERSION:
        return {}
    ends = np.cumsum(arrays["counts"])
    offsets, lengths = np.split(arrays["offsets"], ends[:-1]), np.split(arrays["lengths"], ends[:-1])
    names, damages = json.loads(str(arrays["names"])), json.loads(str(arrays["damages"]))
    sizes, mtimes = arrays["sizes"].tolist(), arrays["mtimes_ns"].tolist()
    scans = {}
    for i, name in enumerate(names):
        path = paths[name]
        if (offsets[i] < 0).any() or (offsets[i] + lengths[i] + FRAME_BYTES > sizes[i]).any():
            raise ValueError(f"records of {name} lie outside of it")
        found = tuple(Damage(path, int(offset), int(length), str(reason)) for offset, length, reason in damages[i])
        scans[path] = RecordScan(sizes[i], mtimes[i], offsets[i], lengths[i], found)
    return scans


def warn_of_damages(damages: Sequence[Damage]) -> None:
    for damage in damages[:_DAMAGES_IN_LOG]:
        tf.logging.warning("Damaged tfrecord file, the rest of it is used: %s", damage)
    if len(damages) > _DAMAGES_IN_LOG:
        tf.logging.warning("... and %d more damaged places in tfrecord files.", len(damages) - _DAMAGES_IN_LOG)


def name_files(paths: Sequence[str]) -> str:
    return repr(paths[0]) if len(paths) == 1 else f"any of the {len(paths)} files {paths[0]!r} ... {paths[-1]!r}"


def first_damage(index: RecordIndex) -> str:
    return f": {index.damages[0].reason}" if index.damages else ": empty"

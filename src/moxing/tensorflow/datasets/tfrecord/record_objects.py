"""TFRecord files on an object store: finds the files, indexes their records and reads them.

When a record of a file is requested for the first time, the whole file is fetched into the local cache, in the
background. Until then, and if it does not fit into the cache, records are read by range requests.
"""

from __future__ import annotations

import errno
import fnmatch
import io
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework import file
from moxing.framework.file.atomic_write import replace_file
from moxing.framework.file.errors import MoxFileReadException, not_exists
from moxing.framework.file.remote.listing import has_path
from moxing.tensorflow.datasets.stored.data_cache import DataCache, data_cache, download, file_cache
from moxing.tensorflow.datasets.stored.look_ahead import LookAhead, RequestThreads, requests_ahead, requests_at_once
from moxing.tensorflow.datasets.stored.objects import (
    StoredObject,
    UnusableObjectError,
    is_stored,
    read_range,
    require_remote,
    stored_object,
    version_number,
)
from moxing.tensorflow.datasets.tfrecord.index_cache import index_name, scans_from_arrays, scans_to_arrays
from moxing.tensorflow.datasets.tfrecord.parallel_scan import scan_all
from moxing.tensorflow.datasets.tfrecord.record_files import FRAME_BYTES, INDEX_DIRECTORY, RecordScan, scan
from moxing.tensorflow.datasets.tfrecord.record_index import (
    RecordIndex,
    describe_files,
    describe_first_damage,
    log_damages,
)
from moxing.tensorflow.datasets.tfrecord.record_reader import (
    BadRecordError,
    Numbers,
    RecordReader,
    check_record,
    join_neighbours,
)

_FILES_SCANNED_AT_ONCE = 4
_FILES_FETCHED_AT_ONCE = 2
#: Neighbouring records are read with one request up to this size, so that a long range needs several requests.
_MAX_REQUEST = 1 << 20
_MAX_LISTED = 5


def find_objects(base_dir: str, file_pattern: str | Sequence[str]) -> list[StoredObject]:
    """Returns the files in a directory of an object store that match, sorted; `record_files.find_files` for urls.

    Raises:
      ValueError: no file matches.
      FileNotFoundError: there is no such directory.
    """
    patterns = [file_pattern] if isinstance(file_pattern, str) else list(file_pattern)
    if not patterns or not all(isinstance(pattern, str) and pattern for pattern in patterns):
        raise ValueError(f"file_pattern={file_pattern!r}: expected a pattern such as '*.tfrecord', or a list of them.")
    remote = require_remote(base_dir, "base_dir")
    # Patterns without folders need no recursive listing.
    flat = all("/" not in pattern and pattern != "**" for pattern in patterns)
    listed = remote.backend.entries(remote.path) or () if flat else remote.backend.tree(remote.path)
    entries = list(filter(has_path, listed))
    if not entries and not remote.backend.is_directory(remote.path):
        raise not_exists("base_dir", remote.url, "no such directory")
    files = [entry for entry in entries if not entry.is_directory and not re.search(r"(^|/)(\.|$)", entry.relative)]
    wanted = [pattern.split("/") for pattern in patterns]
    found = [item for item in files if any(matches_parts(item.relative.split("/"), parts) for parts in wanted)]
    if not found:
        names = sorted(entry.relative + "/" * entry.is_directory for entry in entries if entry.relative[:1] != ".")
        more = len(names) - _MAX_LISTED
        shown = f"It holds {', '.join(names[:_MAX_LISTED])}{f' and {more} more' if more > 0 else ''}."
        raise ValueError(
            f"file_pattern={file_pattern!r}: no file in base_dir={base_dir!r} matches. "
            f"{shown if names else 'The directory is empty.'}"
        )
    return sorted((stored_object(remote, entry) for entry in found), key=lambda item: item.url)


def matches_parts(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Returns whether `glob` would find a path, given by its parts.

    Example:
      >>> matches_parts(['a', 'b', 'c.rec'], ['**', '*.rec']), matches_parts(['a', 'c.rec'], ['*.rec'])
      (True, False)
    """
    if not patterns:
        return not names
    if patterns[0] == "**":
        return any(matches_parts(names[start:], patterns[1:] or ["*"]) for start in range(len(names) + 1))
    return bool(names) and fnmatch.fnmatchcase(names[0], patterns[0]) and matches_parts(names[1:], patterns[1:])


class StoredRecordIndex(RecordIndex):
    """The locations of the records of files on an object store.

    Attributes:
      objects: the files by url.
    """

    def __init__(self, objects: Sequence[StoredObject], scans: Sequence[RecordScan]) -> None:
        super().__init__([item.url for item in objects], scans)
        self.objects = {item.url: item for item in objects}

    @classmethod
    def of(cls, objects: Sequence[StoredObject], show_progress: bool = True) -> StoredRecordIndex:
        """Scans the files for their records, or loads the index of an earlier run for the same versions of the files.

        The index is kept in the local cache, and next to the files if the store is writable.

        Raises:
          ValueError: there is no record in any of the files, or one is compressed.
          OSError: a file cannot be read.
        """
        by_url = {item.url: item for item in sorted(objects)}
        cache = _StoredIndexCache(by_url)
        scans = cache.load()
        missing = {url: item.length for url, item in by_url.items() if url not in scans}
        if missing:
            tf.logging.info(
                "Automatically extracting num_samples from tfrecord. Fetching %d file(s) from %s, which takes some "
                "time if the dataset is large; the result is kept for the next run.",
                len(missing),
                os.path.dirname(next(iter(missing))),
            )
            scan_one = partial(_fetch_and_scan, by_url, file_cache())
            scans.update(scan_all(missing, show_progress, scan_one, _FILES_SCANNED_AT_ONCE))
        index = cls(objects, [scans[item.url] for item in objects])
        if not len(index):
            raise ValueError(f"There is no record in {describe_files(list(by_url))}{describe_first_damage(index)}.")
        if missing:
            cache.save(scans)
            tf.logging.info("Found %d records in %d tfrecord file(s).", len(index), len(objects))
        log_damages(index.damages)
        return index

    def reader(self) -> RecordReader:
        return StoredRecordReader(self)


class StoredRecordReader(RecordReader):
    """Reads records of files on an object store, from the local cache if it has the file."""

    def __init__(self, index: StoredRecordIndex) -> None:
        super().__init__(index)
        self._objects = index.objects
        self._cache = file_cache()
        self._threads = RequestThreads(requests_at_once())
        self._fetching = RequestThreads(_FILES_FETCHED_AT_ONCE)
        self._results = LookAhead(self._start, 8 * requests_ahead())
        #: The local copies by url; None while a file is fetched, or if there is no room for it.
        self._copies: dict[str, str | None] = {}

    def will_need(self, numbers: Numbers) -> None:
        """Starts to read these records and to fetch their files. Does not wait."""
        self._results.expect(int(number) for number in numbers)

    def read(self, numbers: Numbers) -> list[bytes | None]:
        wanted = [int(number) for number in numbers]
        results = self._results.take(wanted)
        return [self._data_or_none(number, found[number]) for number, found in zip(wanted, results, strict=True)]

    def _read_one(self, number: int) -> bytes | None:
        return self.read([number])[0]

    def _data_or_none(self, number: int, found: bytes | BadRecordError) -> bytes | None:
        if isinstance(found, BadRecordError):
            self._keep_reason(number, found)
            return None
        return found

    def _start(self, numbers: list[int]) -> Mapping[int, Future[dict[int, bytes | BadRecordError]]]:
        local = [number for number in numbers if self._copy(self._index.locate(number)[0]) is not None]
        futures = dict.fromkeys(local, self._threads.submit(self._read_copies, local)) if local else {}
        remote = list(set(numbers).difference(local))
        for path, begin, end, held in join_neighbours(self._index, remote, _MAX_REQUEST):
            futures |= dict.fromkeys(held, self._threads.submit(self._request, path, begin, end, held))
        return futures

    def _copy(self, url: str) -> str | None:
        """Returns the local copy of a file; starts to fetch it if there is none."""
        if url not in self._copies:
            self._copies[url] = self._cache.find_file(self._objects[url])
            if self._copies[url] is None:
                self._fetching.submit(self._fetch_copy, url)
        return self._copies[url]

    def _fetch_copy(self, url: str) -> None:
        try:
            self._copies[url] = self._cache.fetch_file(self._objects[url])
        except (UnusableObjectError, OSError) as error:
            # The requests for its records will report the error.
            tf.logging.debug("%s was not fetched as a whole: %s", url, error)

    def _read_copies(self, numbers: Sequence[int]) -> dict[int, bytes | BadRecordError]:
        return {number: self._read_copy(number) for number in numbers}

    def _read_copy(self, number: int) -> bytes | BadRecordError:
        url, offset, length = self._index.locate(number)
        path = self._copies.get(url)
        try:
            if path is not None:
                return self._fetch(path, offset, length)
        except BadRecordError:
            pass
        found = self._request(url, offset, offset + FRAME_BYTES + length, [number])[number]
        if path is not None and isinstance(found, bytes):
            # The copy is damaged, or another process has removed it. The store has the record.
            self._copies[url] = None
            self._files.forget(path)
            self._cache.discard_file(self._objects[url])
            self._fetching.submit(self._fetch_copy, url)
        return found

    def _request(self, url: str, begin: int, end: int, numbers: Sequence[int]) -> dict[int, bytes | BadRecordError]:
        try:
            content = read_range(self._objects[url], begin, end)
        except UnusableObjectError as error:
            return {number: BadRecordError(str(error)) for number in numbers}
        found: dict[int, bytes | BadRecordError] = {}
        for number in numbers:
            _, offset, length = self._index.locate(number)
            try:
                found[number] = check_record(content[offset - begin : offset - begin + FRAME_BYTES + length], length)
            except BadRecordError as error:
                found[number] = error
        return found


def _fetch_and_scan(
    objects: Mapping[str, StoredObject], cache: DataCache, url: str, progress: Callable[[int], object]
) -> RecordScan:
    item = objects[url]
    progress(0)
    try:
        path = cache.find_file(item)
        found = scan(path, progress, url) if path is not None else None
        if found is not None and found.damages:
            # The index is shared, and a crashed machine may have left a copy of the right size with holes: trust
            # damages only in a copy that was just fetched.
            cache.discard_file(item)
            found = None
        if found is None:
            found = _scan_new_copy(item, cache, progress)
    except UnusableObjectError as error:
        raise MoxFileReadException(None, errno.EIO, str(error), url) from error
    return replace(found, mtime_ns=version_number(item))


def _scan_new_copy(item: StoredObject, cache: DataCache, progress: Callable[[int], object]) -> RecordScan:
    path = cache.fetch_file(item)
    if path is not None:
        return scan(path, progress, item.url)
    with tempfile.TemporaryDirectory(dir=cache.directory) as folder:
        download(item, os.path.join(folder, "records"))
        return scan(os.path.join(folder, "records"), progress, item.url)


def _read_if_exists(index_file: str) -> bytes | bytearray | None:
    if not is_stored(index_file):
        with suppress(OSError):
            return Path(index_file).read_bytes()
        return None
    stored = require_remote(index_file, "index_file")
    try:
        return stored.backend.read(stored.path)
    except OSError as error:
        # The access key may be valid for the data only. An unreachable store raises.
        if error.errno in (errno.EACCES, errno.EPERM):
            return None
        raise


class _StoredIndexCache:
    """The scans of files on an object store, kept in one file. Valid for files that still have the same version."""

    def __init__(self, objects: Mapping[str, StoredObject]) -> None:
        self._objects = objects
        name = index_name(objects)
        user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        cache = data_cache()
        local = [os.path.join(cache.directory, "index")] if cache else []
        local.append(os.path.join(user, "moxing", "index"))
        self._local = [os.path.join(parent, name) for parent in local]
        # Relative names, so that the index is valid in a copy of the directory.
        directory = next(iter(objects)).rpartition("/")[0]
        self._names = {url.removeprefix(f"{directory}/"): url for url in objects}
        self._stored = f"{directory}/{INDEX_DIRECTORY}/{index_name(self._names)}"

    def load(self) -> dict[str, RecordScan]:
        """Returns the scans of the files that have not changed, by url."""
        valid: dict[str, RecordScan] = {}
        for index_file in (*self._local, self._stored):
            for url, found in self._load_from(index_file).items():
                item = self._objects[url]
                if (found.size, found.mtime_ns) == (item.length, version_number(item)):
                    valid.setdefault(url, found)
            if len(valid) == len(self._objects):
                break
        return valid

    def _load_from(self, index_file: str) -> dict[str, RecordScan]:
        content = _read_if_exists(index_file)
        if content is None:
            return {}
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                return scans_from_arrays({key: stored[key] for key in stored.files}, self._names)
        except Exception as error:  # damage raises many kinds of errors; all of them just mean to scan again
            tf.logging.debug("The index of tfrecord files in %s is not usable: %s", index_file, error)
            return {}

    def save(self, scans: Mapping[str, RecordScan]) -> None:
        """Saves the scans in the first local directory that is writable, and on the store if it is writable."""
        stream = io.BytesIO()
        np.savez(stream, **scans_to_arrays(list(self._names), [scans[url] for url in self._names.values()]))
        content = stream.getvalue()
        for index_file in self._local:
            try:
                os.makedirs(os.path.dirname(index_file), exist_ok=True)
                replace_file(index_file, "cache_dir", lambda target: target.write(content))
                break
            except OSError as error:
                tf.logging.debug("The index of the tfrecord files cannot be kept in %s: %s", index_file, error)
        try:
            file.write(self._stored, content, binary=True)
        except OSError as error:
            tf.logging.debug("The index of the tfrecord files cannot be kept in %s: %s", self._stored, error)

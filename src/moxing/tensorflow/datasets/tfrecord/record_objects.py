"""TFRecord files on a store: which there are, where their records lie, and reading them.

A file is fetched as a whole into the local cache, in the background, as soon as one of its records is wanted. What is
wanted before that, or does not fit into the cache, is read by requests for parts of the file.
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
from moxing.framework.file.errors import MoxFileReadException, not_exists
from moxing.framework.file.remote_listing import has_path
from moxing.framework.file.replacing import replace_file
from moxing.tensorflow.datasets.stored.data_cache import DataCache, data_cache, download, file_cache
from moxing.tensorflow.datasets.stored.look_ahead import LookAhead, RequestThreads, requests_ahead, requests_at_once
from moxing.tensorflow.datasets.stored.objects import (
    StoredObject,
    UnusableObjectError,
    is_stored,
    read_range,
    require_place,
    stored_object,
    version_number,
)
from moxing.tensorflow.datasets.tfrecord.record_files import FRAME_BYTES, INDEX_DIRECTORY, RecordScan, scan
from moxing.tensorflow.datasets.tfrecord.record_index import (
    BadRecordError,
    Numbers,
    RecordIndex,
    RecordReader,
    check_record,
    first_damage,
    index_name,
    join_neighbours,
    name_files,
    scan_all,
    scans_from_arrays,
    scans_to_arrays,
    warn_of_damages,
)

_FILES_SCANNED_AT_ONCE = 4
_FILES_FETCHED_AT_ONCE = 2
#: Neighbouring records are one request up to this size, so that several requests are under way for a long stretch.
_LARGEST_REQUEST = 1 << 20
_FILES_NAMED_IN_ERRORS = 5


def find_objects(base_dir: str, file_pattern: str | Sequence[str]) -> list[StoredObject]:
    """The files in a directory of a store that match, sorted; `record_files.find_files` for urls.

    Raises:
      ValueError: no file matches.
      FileNotFoundError: there is no such directory.
    """
    patterns = [file_pattern] if isinstance(file_pattern, str) else list(file_pattern)
    if not patterns or not all(isinstance(pattern, str) and pattern for pattern in patterns):
        raise ValueError(f"file_pattern={file_pattern!r}: expected a pattern such as '*.tfrecord', or a list of them.")
    place = require_place(base_dir, "base_dir")
    # Without folders in the patterns, what is in folders need not be listed.
    flat = all("/" not in pattern and pattern != "**" for pattern in patterns)
    listed = place.backend.entries(place.path) or () if flat else place.backend.tree(place.path)
    entries = list(filter(has_path, listed))
    if not entries and not place.backend.is_directory(place.path):
        raise not_exists("base_dir", place.url, "no such directory")
    files = [entry for entry in entries if not entry.is_directory and not re.search(r"(^|/)(\.|$)", entry.relative)]
    wanted = [pattern.split("/") for pattern in patterns]
    found = [item for item in files if any(matches_parts(item.relative.split("/"), parts) for parts in wanted)]
    if not found:
        names = sorted(entry.relative + "/" * entry.is_directory for entry in entries if entry.relative[:1] != ".")
        more = len(names) - _FILES_NAMED_IN_ERRORS
        shown = f"It holds {', '.join(names[:_FILES_NAMED_IN_ERRORS])}{f' and {more} more' if more > 0 else ''}."
        raise ValueError(
            f"file_pattern={file_pattern!r}: no file in base_dir={base_dir!r} matches. "
            f"{shown if names else 'The directory is empty.'}"
        )
    return sorted((stored_object(place, entry) for entry in found), key=lambda item: item.url)


def matches_parts(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether a path, by its parts, is one that `glob` would find.

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
    """Where each record of files on a store is.

    Attributes:
      objects: the files by url.
    """

    def __init__(self, objects: Sequence[StoredObject], scans: Sequence[RecordScan]) -> None:
        super().__init__([item.url for item in objects], scans)
        self.objects = {item.url: item for item in objects}

    @classmethod
    def of(cls, objects: Sequence[StoredObject], show_progress: bool = True) -> StoredRecordIndex:
        """Finds the records of these files, or takes what an earlier run found in the same versions of them.

        What is found is kept in the local cache and beside the files, if the store lets us write there.

        Raises:
          ValueError: there is no record in any of the files, or one is compressed.
          OSError: a file cannot be read.
        """
        by_url = {item.url: item for item in sorted(objects)}
        kept = _KeptScans(by_url)
        scans = kept.load()
        missing = {url: item.length for url, item in by_url.items() if url not in scans}
        if missing:
            tf.logging.info(
                "Automatically extracting num_samples from tfrecord. %d file(s) are fetched from %s, which takes some "
                "time if the data set is large; the result is kept for the next run.",
                len(missing),
                os.path.dirname(next(iter(missing))),
            )
            scan_one = partial(_fetch_and_scan, by_url, file_cache())
            scans.update(scan_all(missing, show_progress, scan_one, _FILES_SCANNED_AT_ONCE))
        index = cls(objects, [scans[item.url] for item in objects])
        if not len(index):
            raise ValueError(f"There is no record in {name_files(list(by_url))}{first_damage(index)}.")
        if missing:
            kept.save(scans)
            tf.logging.info("Found %d records in %d tfrecord file(s).", len(index), len(objects))
        warn_of_damages(index.damages)
        return index

    def reader(self) -> RecordReader:
        return StoredRecordReader(self)


class StoredRecordReader(RecordReader):
    """Reads records of files on a store, from the local cache as far as they are there."""

    def __init__(self, index: StoredRecordIndex) -> None:
        super().__init__(index)
        self._objects = index.objects
        self._cache = file_cache()
        self._threads = RequestThreads(requests_at_once())
        self._fetching = RequestThreads(_FILES_FETCHED_AT_ONCE)
        self._results = LookAhead(self._begin, 8 * requests_ahead())
        #: By url, the local copy; None while it is fetched, or if there is no room for it.
        self._copies: dict[str, str | None] = {}

    def will_need(self, numbers: Numbers) -> None:
        """Begins to read these records, and to fetch their files; does not wait."""
        self._results.expect(int(number) for number in numbers)

    def read(self, numbers: Numbers) -> list[bytes | None]:
        wanted = [int(number) for number in numbers]
        results = self._results.take(wanted)
        return [self._taken(number, found[number]) for number, found in zip(wanted, results, strict=True)]

    def _read_one(self, number: int) -> bytes | None:
        return self.read([number])[0]

    def _taken(self, number: int, found: bytes | BadRecordError) -> bytes | None:
        if isinstance(found, BadRecordError):
            self._note(number, found)
            return None
        return found

    def _begin(self, numbers: list[int]) -> Mapping[int, Future[dict[int, bytes | BadRecordError]]]:
        here = [number for number in numbers if self._copy(self._index.locate(number)[0]) is not None]
        begun = dict.fromkeys(here, self._threads.submit(self._read_here, here)) if here else {}
        elsewhere = list(set(numbers).difference(here))
        for path, begin, end, held in join_neighbours(self._index, elsewhere, _LARGEST_REQUEST):
            begun |= dict.fromkeys(held, self._threads.submit(self._request, path, begin, end, held))
        return begun

    def _copy(self, url: str) -> str | None:
        """The local copy of a file; if there is none, it is begun to fetch it."""
        if url not in self._copies:
            self._copies[url] = self._cache.find_file(self._objects[url])
            if self._copies[url] is None:
                self._fetching.submit(self._fetch_copy, url)
        return self._copies[url]

    def _fetch_copy(self, url: str) -> None:
        try:
            self._copies[url] = self._cache.fetch_file(self._objects[url])
        except (UnusableObjectError, OSError) as error:
            # What is wrong shows with the requests for its records.
            tf.logging.debug("%s was not fetched as a whole: %s", url, error)

    def _read_here(self, numbers: Sequence[int]) -> dict[int, bytes | BadRecordError]:
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
            # The copy is damaged, or another process made room. The store has the record.
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
            # What is found is kept for all, and a machine that failed may have left a copy of the right size with
            # holes: damages count only in a copy that has just come.
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


def _read_if_there(place: str) -> bytes | bytearray | None:
    if not is_stored(place):
        with suppress(OSError):
            return Path(place).read_bytes()
        return None
    stored = require_place(place, "place")
    try:
        return stored.backend.read(stored.path)
    except OSError as error:
        # Keys may be for the data only. A store that is away is another matter, and shows now.
        if error.errno in (errno.EACCES, errno.EPERM):
            return None
        raise


class _KeptScans:
    """What was found in files on a store, in one file. It is good for those files that are still the same versions."""

    def __init__(self, objects: Mapping[str, StoredObject]) -> None:
        self._objects = objects
        name = index_name(objects)
        user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        cache = data_cache()
        local = [os.path.join(cache.directory, "index")] if cache else []
        local.append(os.path.join(user, "moxing", "index"))
        self._local = [os.path.join(directory, name) for directory in local]
        # Relative names, so that a copy of the directory has the index, too.
        beside = next(iter(objects)).rpartition("/")[0]
        self._names = {url.removeprefix(f"{beside}/"): url for url in objects}
        self._stored = f"{beside}/{INDEX_DIRECTORY}/{index_name(self._names)}"

    def load(self) -> dict[str, RecordScan]:
        """The scans of those files that have not changed, by url."""
        valid: dict[str, RecordScan] = {}
        for place in (*self._local, self._stored):
            for url, found in self._load_from(place).items():
                item = self._objects[url]
                if (found.size, found.mtime_ns) == (item.length, version_number(item)):
                    valid.setdefault(url, found)
            if len(valid) == len(self._objects):
                break
        return valid

    def _load_from(self, place: str) -> dict[str, RecordScan]:
        content = _read_if_there(place)
        if content is None:
            return {}
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                return scans_from_arrays({key: stored[key] for key in stored.files}, self._names)
        except Exception as error:  # Damage shows in many ways, and each means no more than another scan.
            tf.logging.debug("The index of tfrecord files in %s is not usable: %s", place, error)
            return {}

    def save(self, scans: Mapping[str, RecordScan]) -> None:
        """Keeps the scans in the first local place that can be written, and on the store if it lets us."""
        stream = io.BytesIO()
        np.savez(stream, **scans_to_arrays(list(self._names), [scans[url] for url in self._names.values()]))
        content = stream.getvalue()
        for place in self._local:
            try:
                os.makedirs(os.path.dirname(place), exist_ok=True)
                replace_file(place, "cache_dir", lambda target: target.write(content))
                break
            except OSError as error:
                tf.logging.debug("The index of the tfrecord files cannot be kept in %s: %s", place, error)
        try:
            file.write(self._stored, content, binary=True)
        except OSError as error:
            tf.logging.debug("The index of the tfrecord files cannot be kept in %s: %s", self._stored, error)

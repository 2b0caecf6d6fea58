"""Finds TFRecord files, and the records in a file.

TensorFlow's readers stop at the first damaged byte of a file. Here a file is scanned from header to header. After a
damaged header the scan continues at the next valid record, and the bytes in between are reported as a damage.
"""

from __future__ import annotations

import glob
import os
import shlex
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from moxing.framework import file
from moxing.framework.file.errors import not_exists
from moxing.framework.file.urls import local_path
from moxing.tensorflow.datasets.tfrecord.checksums import FOOTER_BYTES, HEADER_BYTES, are_headers_valid, masked_crc32c

#: The directory next to the data that keeps the index.
INDEX_DIRECTORY = ".moxing_index"

#: Bytes around the data of a record.
FRAME_BYTES = HEADER_BYTES + FOOTER_BYTES

#: Small records are scanned in windows of this size.
_WINDOW = 1 << 20
#: After a record of at least this length, only the next header is read.
_LARGE_RECORD = 1 << 16
_HEADERS_AT_ONCE = 512
#: The search after a damage starts with the first number of bytes and doubles it up to the second.
_SEARCH_STEP, _SEARCH_STEP_MAX = 1 << 16, 1 << 22

_MAX_LISTED = 5

_unpack_length = struct.Struct("<Q").unpack_from


@dataclass(frozen=True)
class Damage:
    """A part of a file without a readable record.

    Attributes:
      path: the file.
      offset: the byte at which the damage begins.
      length: the number of bytes to the next good record or to the end of the file.
      reason: what is wrong.

    Example:
      >>> print(Damage('a.tfrecord', 16, 20, 'the file ends inside a record'))
      a.tfrecord, byte 16: the file ends inside a record (20 bytes lost)
    """

    path: str
    offset: int
    length: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}, byte {self.offset}: {self.reason} ({self.length} bytes lost)"


@dataclass(frozen=True, eq=False)
class RecordScan:
    """The records of one file.

    Attributes:
      size: the size of the file in bytes when it was scanned.
      mtime_ns: the time of its last change when it was scanned.
      offsets: the byte at which each record begins, int64.
      lengths: the number of bytes of data in each record, int64.
      damages: the parts of the file without a readable record.
    """

    size: int
    mtime_ns: int
    offsets: np.ndarray
    lengths: np.ndarray
    damages: tuple[Damage, ...]


def find_files(base_dir: str, file_pattern: str | Sequence[str]) -> list[str]:
    """Returns the files in `base_dir` that match, sorted. Hidden files and directories are ignored.

    Args:
      base_dir: a directory.
      file_pattern: a pattern with `*`, `?`, `[...]` and `**`, or a list of them.

    Raises:
      ValueError: no file matches.
      FileNotFoundError: there is no such directory.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     for name in ('train-1', 'train-0', 'eval-0'):
      ...         file.write(os.path.join(folder, name), '')
      ...     [os.path.basename(path) for path in find_files(folder, 'train-*')]
      ['train-0', 'train-1']
    """
    directory = local_path(base_dir, "base_dir")
    patterns = [file_pattern] if isinstance(file_pattern, str) else list(file_pattern)
    if not patterns or not all(isinstance(pattern, str) and pattern for pattern in patterns):
        raise ValueError(f"file_pattern={file_pattern!r}: expected a pattern such as '*.tfrecord', or a list of them.")
    if not file.is_directory(directory):
        raise not_exists("base_dir", directory, "no such directory")
    matches: set[str] = set()
    for pattern in patterns:
        matches.update(file.glob(os.path.join(glob.escape(directory), pattern), recursive=True))
    found = sorted(path for path in matches if not _is_hidden(path, directory) and not file.is_directory(path))
    if not found:
        raise ValueError(
            f"file_pattern={file_pattern!r}: no file in base_dir={base_dir!r} matches. {_describe_content(directory)}"
        )
    return found


def _is_hidden(path: str, directory: str) -> bool:
    return any(part.startswith(".") and part != ".." for part in os.path.relpath(path, directory).split(os.sep))


def _describe_content(directory: str) -> str:
    names = [name for name in file.list_directory(directory, remove_sep=False) if not name.startswith(".")]
    if not names:
        return "The directory is empty."
    more = len(names) - _MAX_LISTED
    return f"It holds {', '.join(names[:_MAX_LISTED])}{f' and {more} more' if more > 0 else ''}."


def scan(path: str, progress: Callable[[int], object] = lambda count: None, name: str | None = None) -> RecordScan:
    """Finds the records of a file by their headers. The data is not read: a wrong byte in it is found when it is read.

    Only around a damaged header the data is checked: of the record before, which may be truncated or overwritten, and
    of the one after, to make sure that it is a record.

    Args:
      path: a local file.
      progress: called from time to time with the number of bytes scanned since the last call. If it raises, the scan
        ends.
      name: the name of the file in messages; None uses its path.

    Raises:
      ValueError: the file is compressed.

    Example:
      >>> import tempfile, tensorflow.compat.v1 as tf
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     with tf.python_io.TFRecordWriter(folder + '/a') as writer:
      ...         for data in (b'first', b'second'):
      ...             writer.write(data)
      ...     found = scan(folder + '/a')
      >>> found.offsets.tolist(), found.lengths.tolist(), found.damages
      ([0, 21], [5, 6], ())
    """
    name = path if name is None else name
    with open(path, "rb", buffering=0) as stream:
        status = os.fstat(stream.fileno())
        walker = _Walker(stream.fileno(), status.st_size, progress)
        walker.walk(0)
        if walker.position == 0 and status.st_size:
            _refuse_compressed(name, walker.read(0, 1 << 12))
        damages = []
        while walker.position < status.st_size:
            start, reason = walker.examine()
            end = walker.find_record(start + 1)
            damages.append(Damage(name, start, end - start, reason))
            walker.walk(end)
    offsets, lengths = walker.records()
    if damages and not len(offsets):
        damages = [Damage(name, 0, status.st_size, "there is no valid record in this file, is it a TFRecord file?")]
    return RecordScan(status.st_size, status.st_mtime_ns, offsets, lengths, tuple(damages))


def read_exactly(descriptor: int, count: int, offset: int) -> bytes:
    """Reads `count` bytes of an open file, fewer only at its end. Thread-safe.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryFile() as stream:
      ...     _ = stream.write(b'hello'); stream.flush()
      ...     read_exactly(stream.fileno(), 10, 1)
      b'ello'
    """
    data = os.pread(descriptor, count, offset)
    # One call reads at most 2 GB, and network file systems may return less.
    while len(data) < count and (more := os.pread(descriptor, count - len(data), offset + len(data))):
        data += more
    return data


class _Walker:
    """Scans one open file and collects its records. `position` is the end of the last valid record."""

    def __init__(self, descriptor: int, size: int, progress: Callable[[int], object]) -> None:
        self._descriptor, self._size, self._progress = descriptor, size, progress
        self._offsets: list[np.ndarray] = []
        self._lengths: list[np.ndarray] = []
        self.position = 0

    def read(self, offset: int, count: int) -> bytes:
        return read_exactly(self._descriptor, count, offset)

    def records(self) -> tuple[np.ndarray, np.ndarray]:
        nothing: np.ndarray = np.zeros(0, np.int64)
        return np.concatenate([nothing, *self._offsets]), np.concatenate([nothing, *self._lengths])

    def walk(self, start: int) -> None:
        """Scans from header to header, to the end of the file or to the first damaged header."""
        self.position = start
        is_large = False
        while self.position + FRAME_BYTES <= self._size:
            begin = self.position
            follow = self._follow_one_by_one if is_large else self._follow_in_window
            headers, offsets, lengths, end = follow(begin)
            good = self._count_valid(headers, offsets, lengths)
            if good:
                self._offsets.append(offsets[:good])
                self._lengths.append(lengths[:good].astype(np.int64))
            self.position = end if good == len(offsets) else int(offsets[good])
            self._progress(self.position - begin)
            if good < len(offsets) or not good:
                return
            is_large = bool(lengths[-1] >= _LARGE_RECORD)

    def _follow_in_window(self, begin: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Returns headers, offsets and lengths of the records in a window, unchecked, and the position after them."""
        window = self.read(begin, _WINDOW)
        offsets: list[int] = []
        lengths: list[int] = []
        at, last = 0, len(window) - HEADER_BYTES
        while at <= last:
            (length,) = _unpack_length(window, at)
            offsets.append(at)
            lengths.append(length)
            at += length + FRAME_BYTES
        relative = np.array(offsets, np.int64)
        headers = _windows(window)[relative] if offsets else np.zeros((0, HEADER_BYTES), np.uint8)
        return headers, relative + begin, np.array(lengths, np.uint64), begin + at

    def _follow_one_by_one(self, begin: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """The same for large records: reads only their headers, several hundred of them."""
        headers: list[bytes] = []
        offsets: list[int] = []
        lengths: list[int] = []
        at, length = begin, _LARGE_RECORD
        while length >= _LARGE_RECORD and len(headers) < _HEADERS_AT_ONCE and at + FRAME_BYTES <= self._size:
            header = self.read(at, HEADER_BYTES)
            if len(header) < HEADER_BYTES:
                break
            (length,) = _unpack_length(header)
            headers.append(header)
            offsets.append(at)
            lengths.append(length)
            at += length + FRAME_BYTES
        found = np.frombuffer(b"".join(headers), np.uint8).reshape(-1, HEADER_BYTES)
        return found, np.array(offsets, np.int64), np.array(lengths, np.uint64), at

    def _count_valid(self, headers: np.ndarray, offsets: np.ndarray, lengths: np.ndarray) -> int:
        """Returns how many of the records, from the first on, have a valid header and end within the file."""
        if not len(headers):
            return 0
        # The last header may claim any length, up to 2**64.
        room: np.ndarray = self._size - FRAME_BYTES - offsets
        valid = are_headers_valid(headers) & (room >= 0) & (lengths <= np.maximum(room, 0).astype(np.uint64))
        return len(valid) if valid.all() else int(valid.argmin())

    def examine(self) -> tuple[int, str]:
        """Returns where the damage at `position` begins, and the reason. Drops the record before it if damaged."""
        if self._offsets:
            offset, length = int(self._offsets[-1][-1]), int(self._lengths[-1][-1])
            if offset + FRAME_BYTES + length == self.position and not self._is_data_valid(offset, length):
                self._drop_last()
                return offset, "a record was truncated or overwritten"
        header = self.read(self.position, HEADER_BYTES)
        is_cut = len(header) < HEADER_BYTES or are_headers_valid(_windows(header))[0]
        return self.position, "the file ends inside a record" if is_cut else "the length of a record is damaged"

    def _drop_last(self) -> None:
        offsets, lengths = self._offsets.pop(), self._lengths.pop()
        if len(offsets) > 1:
            self._offsets.append(offsets[:-1])
            self._lengths.append(lengths[:-1])

    def find_record(self, start: int) -> int:
        """Returns where the next valid record begins; the end of the file if there is none."""
        step = _SEARCH_STEP
        while start + FRAME_BYTES <= self._size:
            chunk = self.read(start, step + HEADER_BYTES - 1)
            for candidate in _find_headers(chunk, self._size - FRAME_BYTES - start):
                length = int.from_bytes(chunk[candidate : candidate + 8], "little")
                offset = start + candidate
                if offset + FRAME_BYTES + length <= self._size and self._is_data_valid(offset, length):
                    return offset
            start += step
            self._progress(step)
            step = min(2 * step, _SEARCH_STEP_MAX)
        return self._size

    def _is_data_valid(self, offset: int, length: int) -> bool:
        data = self.read(offset + HEADER_BYTES, length + FOOTER_BYTES)
        return len(data) == length + FOOTER_BYTES and is_checksum_right(data[:length], data[length:])


def is_checksum_right(data: bytes, stored: bytes) -> bool:
    """Whether the four bytes after the data of a record are its checksum.

    Example:
      >>> is_checksum_right(b'data', masked_crc32c(b'data').to_bytes(4, 'little'))
      True
    """
    return masked_crc32c(data) == int.from_bytes(stored, "little")


def _find_headers(chunk: bytes, longest: int) -> Iterable[int]:
    """Returns the positions in `chunk` of valid headers of records of at most `longest` bytes."""
    count = len(chunk) - HEADER_BYTES + 1
    if count <= 0:
        return []
    zero = np.frombuffer(chunk, np.uint8) == 0
    # Most positions are excluded because the upper bytes of a length must be zero; in files with holes, most of the
    # others because twelve zeros are not a header.
    used = (longest.bit_length() + 7) // 8
    upper_zero: np.ndarray = np.ones(count, bool)
    for i in range(used, 8):
        upper_zero &= zero[i : i + count]
    all_zero = upper_zero.copy()
    for i in (*range(used), *range(8, HEADER_BYTES)):
        all_zero &= zero[i : i + count]
    positions = np.flatnonzero(upper_zero & ~all_zero)
    return positions[are_headers_valid(_windows(chunk)[positions])].tolist()


def _windows(data: bytes) -> np.ndarray:
    """Returns all windows of 12 bytes, without a copy."""
    return np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), HEADER_BYTES)


def _refuse_compressed(path: str, begin: bytes) -> None:
    """Raises an error if a file begins like a compressed TFRecord file."""
    source, target = shlex.quote(path), shlex.quote(path + ".plain")
    if begin[:3] == b"\x1f\x8b\x08":
        kind, command = "GZIP", f"gzip -dc < {source} > {target}"
    elif _is_zlib(begin):
        code = "import sys, zlib; sys.stdout.buffer.write(zlib.decompress(sys.stdin.buffer.read()))"
        kind, command = "ZLIB", f'python -c "{code}" < {source} > {target}'
    else:
        return
    raise ValueError(
        f"{path!r} is compressed ({kind}), which is not supported: records are read by number, and a "
        f"compressed TFRecord file can only be read from its start. "
        f"Decompress it first, for example with: {command}"
    )


def _is_zlib(begin: bytes) -> bool:
    try:
        plain = zlib.decompressobj().decompress(begin, HEADER_BYTES)
    except zlib.error:
        return False
    # Two bytes are a weak sign: the content must be a record.
    return len(plain) == HEADER_BYTES and bool(are_headers_valid(_windows(plain))[0])

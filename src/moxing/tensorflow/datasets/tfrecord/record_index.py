"""An index of TFRecord files: the records by number, and where they are.

The files are scanned once. The index is kept next to the data, so that the next run starts at once.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework.file.urls import local_path
from moxing.tensorflow.datasets.tfrecord.index_cache import IndexCache
from moxing.tensorflow.datasets.tfrecord.parallel_scan import scan_all
from moxing.tensorflow.datasets.tfrecord.record_files import Damage, RecordScan
from moxing.tensorflow.datasets.tfrecord.record_reader import RecordReader

_DAMAGES_IN_LOG = 5


class RecordIndex:
    """The locations of the records of a list of files. Records are numbered from 0, file after file.

    Args:
      paths: local files.
      scans: the scan of each file.

    Attributes:
      paths: the files.
      counts: the number of records in each file, int64.
      damages: the parts of the files without a readable record.

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
        empty: np.ndarray = np.zeros(0, np.int64)
        self.paths = tuple(paths)
        self.counts = np.array([len(found.offsets) for found in scans], np.int64)
        self.damages = tuple(damage for found in dict.fromkeys(scans) for damage in found.damages)
        self._ends = np.cumsum(self.counts).tolist()
        self._offsets = np.concatenate([empty, *(found.offsets for found in scans)])
        self._lengths = np.concatenate([empty, *(found.lengths for found in scans)])

    @classmethod
    def build(cls, paths: Sequence[str], show_progress: bool = True, cache_dir: str | None = None) -> RecordIndex:
        """Scans the files for their records, or loads the index of an earlier run for files that have not changed.

        Args:
          paths: local files. A file that is listed twice counts twice.
          show_progress: whether to show a progress bar on the terminal if it takes longer than a second.
          cache_dir: the directory that keeps the index; by default next to the first file, or in the user's cache
            directory if that is not writable.

        Raises:
          ValueError: there is no record in any of the files, or one is compressed.
          OSError: a file cannot be read.
        """
        local = [local_path(path, "paths") for path in paths]
        if not local:
            raise ValueError("paths=[]: expected at least one TFRecord file.")
        unique = sorted(set(local))
        cache = IndexCache(unique, None if cache_dir is None else local_path(cache_dir, "cache_dir"))
        scans = cache.load()
        missing = [path for path in unique if path not in scans]
        if missing:
            tf.logging.info(
                "Automatically extracting num_samples from tfrecord. Reading the headers of %d file(s), which takes "
                "some time if the dataset is large; the result is kept for the next run.",
                len(missing),
            )
            scans.update(scan_all({path: os.path.getsize(path) for path in missing}, show_progress))
        index = cls(local, [scans[path] for path in local])
        if not len(index):
            raise ValueError(f"There is no record in {describe_files(unique)}{describe_first_damage(index)}.")
        if missing:
            cache.save(scans)
            tf.logging.info("Found %d records in %d tfrecord file(s).", len(index), len(local))
        log_damages(index.damages)
        return index

    def __len__(self) -> int:
        return len(self._offsets)

    def reader(self) -> RecordReader:
        """Returns a reader of the records."""
        return RecordReader(self)

    def locate(self, number: int) -> tuple[str, int, int]:
        """Returns the file of a record, the byte at which it begins, and the number of bytes of its data.

        Raises:
          IndexError: there is no such number.
        """
        if not 0 <= number < len(self._offsets):
            raise IndexError(f"number={number}: the records are numbered from 0 to {len(self) - 1}.")
        path = self.paths[bisect_right(self._ends, number)]
        return path, int(self._offsets[number]), int(self._lengths[number])


def log_damages(damages: Sequence[Damage]) -> None:
    """Logs a warning for each of the first damages."""
    for damage in damages[:_DAMAGES_IN_LOG]:
        tf.logging.warning("Damaged tfrecord file, using the rest of it: %s", damage)
    if len(damages) > _DAMAGES_IN_LOG:
        tf.logging.warning("... and %d more damaged places in tfrecord files.", len(damages) - _DAMAGES_IN_LOG)


def describe_files(paths: Sequence[str]) -> str:
    """Returns the files for an error message."""
    return repr(paths[0]) if len(paths) == 1 else f"any of the {len(paths)} files {paths[0]!r} ... {paths[-1]!r}"


def describe_first_damage(index: RecordIndex) -> str:
    """Returns the reason of the first damage for an error message."""
    return f": {index.damages[0].reason}" if index.damages else ": empty"

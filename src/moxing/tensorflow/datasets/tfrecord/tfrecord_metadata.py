"""What is known of TFRecord files without building a graph. Make these in the main function."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property

import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.arguments import check_counts
from moxing.tensorflow.datasets.raw.labels import read_label_map
from moxing.tensorflow.datasets.tfrecord.record_files import find_files
from moxing.tensorflow.datasets.tfrecord.record_index import RecordIndex


class BaseTFRecordMetadata:
    """TFRecord files and how many records they hold.

    Args:
      base_dir: their directory.
      file_pattern: a glob such as `'train-*'`, or several.
      num_samples: the number of records. Without it they are counted when it is asked for, which is done once and then
        kept beside the files; with it nothing is read before the data set is made.
      redirect_dir: read the files of the same names from this directory instead, a local copy for instance.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     with tf.python_io.TFRecordWriter(folder + '/a.tfrecord') as writer:
      ...         writer.write(b'record')
      ...     BaseTFRecordMetadata(folder, '*.tfrecord').num_samples
      1
    """

    def __init__(
        self,
        base_dir: str,
        file_pattern: str | Sequence[str],
        num_samples: int | None = None,
        redirect_dir: str | None = None,
    ) -> None:
        check_counts(num_samples=num_samples)
        self.base_dir, self.file_pattern = base_dir, file_pattern
        self.files = _redirected(find_files(base_dir, file_pattern), base_dir, redirect_dir)
        self._given = num_samples

    @cached_property
    def index(self) -> RecordIndex:
        """Where every record is."""
        index = RecordIndex.build(self.files)
        if self._given is not None and self._given != len(index):
            tf.logging.warning(
                "num_samples=%d was given, and the files of %s hold %d records: %d are read in an epoch.",
                self._given,
                self.base_dir,
                len(index),
                len(index),
            )
        return index

    @property
    def num_samples(self) -> int:
        """The number of records: as given, else counted."""
        return len(self.index) if self._given is None else self._given

    @property
    def total_num_samples(self) -> int:
        """The same, under the name that raw data sets have for it."""
        return self.num_samples


class ImageClassificationTFRecordMetadata(BaseTFRecordMetadata):
    """TFRecord files of images with labels, in the layout of TF-Slim.

    Args:
      base_dir: their directory.
      file_pattern: a glob such as `'train-*'`, or several.
      num_samples: the number of records; counted if not given.
      redirect_dir: read the files of the same names from this directory instead.
      num_classes: how many classes there are; 0: as many as the label file names.
      label_map_file: the file in `base_dir` with lines `0: name`; it may be missing.

    Attributes:
      labels_to_names: class names by number, None without a label file.
      num_classes: the number of classes, 0 where it is not known.
    """

    def __init__(
        self,
        base_dir: str,
        file_pattern: str | Sequence[str],
        num_samples: int | None = None,
        redirect_dir: str | None = None,
        num_classes: int = 0,
        label_map_file: str | None = "labels.txt",
    ) -> None:
        super().__init__(base_dir, file_pattern, num_samples, redirect_dir)
        check_counts(at_least=0, num_classes=num_classes)
        path = os.path.join(base_dir, label_map_file) if label_map_file else None
        self.labels_to_names = read_label_map(path) if path and os.path.exists(path) else None
        named = max(self.labels_to_names) + 1 if self.labels_to_names else 0
        if num_classes and named > num_classes:
            raise ValueError(f"num_classes={num_classes}: {path} numbers its classes up to {named - 1}.")
        self.num_classes = num_classes or named


def _redirected(files: Sequence[str], base_dir: str, redirect_dir: str | None) -> list[str]:
    if redirect_dir is None:
        return list(files)
    moved = [os.path.join(redirect_dir, os.path.relpath(path, base_dir)) for path in files]
    missing = [path for path in moved if not os.path.isfile(path)]
    if missing:
        raise ValueError(f"redirect_dir={redirect_dir!r}: {missing[0]} is missing, of {len(missing)} such files.")
    return moved

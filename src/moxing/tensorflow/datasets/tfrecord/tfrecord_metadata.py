"""Metadata of TFRecord files, known before any graph is built."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property

import tensorflow.compat.v1 as tf

from moxing.framework import file
from moxing.framework.file.urls import local_path
from moxing.tensorflow.datasets.arguments import check_counts
from moxing.tensorflow.datasets.raw.labels import read_label_map
from moxing.tensorflow.datasets.stored.objects import (
    StoredObject,
    is_stored,
    list_tree,
    require_remote,
    stored_object,
)
from moxing.tensorflow.datasets.tfrecord.record_files import find_files
from moxing.tensorflow.datasets.tfrecord.record_index import RecordIndex
from moxing.tensorflow.datasets.tfrecord.record_objects import StoredRecordIndex, find_objects


class BaseTFRecordMetadata:
    """TFRecord files and their number of records. It builds no graph: create it anywhere.

    Args:
      base_dir: the directory of the files, a path or a url.
      file_pattern: a glob such as `'train-*'`, or several.
      num_samples: the number of records. If it is missing, they are counted on first use; the result is kept next to
        the files. If it is passed, nothing is read before the dataset is created.
      redirect_dir: reads the files of the same names from this directory instead, for instance a local copy.

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
        self._objects: list[StoredObject] = []
        if is_stored(base_dir):
            self._objects = find_objects(base_dir, file_pattern)
            self.files = [item.url for item in self._objects]
        else:
            self.files = find_files(base_dir, file_pattern)
        if redirect_dir is not None:
            self._redirect(redirect_dir)
        self._num_samples = num_samples

    @cached_property
    def index(self) -> RecordIndex:
        """The locations of the records."""
        index = StoredRecordIndex.of(self._objects) if self._objects else RecordIndex.build(self.files)
        if self._num_samples is not None and self._num_samples != len(index):
            tf.logging.warning(
                "num_samples=%d, but the files in %s hold %d records: an epoch has %d records.",
                self._num_samples,
                self.base_dir,
                len(index),
                len(index),
            )
        return index

    @property
    def versions(self) -> list[str]:
        """The files, each with an identifier of its version."""
        if self._objects:
            return [f"{item.url}:{item.length}:{item.version}" for item in self._objects]
        stamps = [(path, os.stat(path)) for path in self.files]
        return [f"{path}:{status.st_size}:{status.st_mtime_ns}" for path, status in stamps]

    def _redirect(self, redirect_dir: str) -> None:
        """Replaces the files by those of the same names in another directory."""
        if self._objects:
            names = [path[len(self.base_dir.rstrip("/")) + 1 :] for path in self.files]
        else:
            names = [os.path.relpath(path, local_path(self.base_dir, "base_dir")) for path in self.files]
        if is_stored(redirect_dir):
            remote = require_remote(redirect_dir, "redirect_dir")
            found = {entry.relative: entry for entry in list_tree(remote, "redirect_dir") if not entry.is_directory}
            self.files = [remote.child(name).url for name in names]
            missing = [path for name, path in zip(names, self.files, strict=True) if name not in found]
        else:
            self.files = [os.path.join(local_path(redirect_dir, "redirect_dir"), name) for name in names]
            missing = [path for path in self.files if not os.path.isfile(path)]
        if missing:
            raise ValueError(f"redirect_dir={redirect_dir!r}: {len(missing)} files are missing, {missing[0]} for one.")
        self._objects = [stored_object(remote, found[name]) for name in names] if is_stored(redirect_dir) else []

    @property
    def num_samples(self) -> int:
        """The number of records: the argument, or counted."""
        return len(self.index) if self._num_samples is None else self._num_samples

    @property
    def total_num_samples(self) -> int:
        """The same, under the name that image folders use."""
        return self.num_samples


class ImageClassificationTFRecordMetadata(BaseTFRecordMetadata):
    """TFRecord files of images with labels, in the layout of TF-Slim.

    Args:
      base_dir: the directory of the files, a path or a url.
      file_pattern: a glob such as `'train-*'`, or several.
      num_samples: the number of records; counted if missing.
      redirect_dir: reads the files of the same names from this directory instead.
      num_classes: the number of classes; 0 takes it from the label file.
      label_map_file: the file in `base_dir` with lines `0: name`; it may be missing.

    Attributes:
      labels_to_names: the class names by label; None without a label file.
      num_classes: the number of classes, 0 if unknown.
      given_classes: the argument `num_classes`. A record with a label outside of it is a bad sample.
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
        self.labels_to_names = read_label_map(path) if path and file.exists(path) else None
        named = max(self.labels_to_names) + 1 if self.labels_to_names else 0
        if num_classes and named > num_classes:
            raise ValueError(f"num_classes={num_classes}: {path} numbers its classes up to {named - 1}.")
        self.num_classes = num_classes or named
        # A label file may leave out classes, so only a given number bounds the labels.
        self.given_classes = num_classes

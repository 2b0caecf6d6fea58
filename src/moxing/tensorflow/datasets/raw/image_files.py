"""Image files with their labels as numbered samples: on a local disk, or on an object store."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.array_cache import ArrayCache
from moxing.tensorflow.datasets.bad_samples import BadSample
from moxing.tensorflow.datasets.reader.readers import Reader, refuse_empty
from moxing.tensorflow.datasets.sample_source import Samples
from moxing.tensorflow.datasets.stored.data_cache import data_cache
from moxing.tensorflow.datasets.stored.look_ahead import LookAhead, RequestThreads, requests_ahead, requests_at_once
from moxing.tensorflow.datasets.stored.objects import StoredObject, UnusableObjectError, read_object
from moxing.tensorflow.preprocessing.decoding import explain, pixel_limit


class ImageFiles(Samples):
    """Image files on a local disk.

    Args:
      paths: the paths of the files.
      labels: the label of each file.
      names: the class name of each file, for the feature `label_desc`.
      reader: reads the files.

    Attributes:
      fetchers: how many calls of `fetch` run in parallel.
      read: builds the operation that turns the column `fetched` of a sample into its encoded image.
    """

    def __init__(self, paths: Sequence[str], labels: np.ndarray, names: Sequence[str], reader: Reader) -> None:
        self.paths, self._labels, self._reader = paths, labels, reader
        self._names = np.array([os.fsencode(name) for name in names], object)
        self.fetchers = reader.fetchers
        self.read: Callable[[tf.Tensor], tf.Tensor] = reader.read
        text = tf.TensorSpec([], tf.string)
        label = tf.TensorSpec(labels.shape[1:], tf.as_dtype(labels.dtype))
        self.columns = {"fetched": text, "label": label, "label_desc": text, "image_name": text}

    @property
    def versions(self) -> Sequence[str]:
        """Names of the files for a cache: a changed file has another name, or is checked by its path."""
        return self.paths

    def skip_cached(self, cache: ArrayCache) -> None:
        """Does not fetch samples that are in `cache`. For local files only paths are fetched: nothing to skip."""

    def fetch(self, numbers: np.ndarray) -> list[np.ndarray]:
        paths = np.array([os.fsencode(self.paths[number]) for number in numbers], object)
        names = np.array([os.path.basename(path) for path in paths], object)
        return [self._fetch(numbers, paths), self._labels[numbers], self._names[numbers], names]

    def _fetch(self, numbers: np.ndarray, paths: np.ndarray) -> np.ndarray:
        return self._reader.fetch(paths)

    def explain(self, number: int) -> BadSample:
        path = self.paths[number]
        try:
            reason = explain(self._content(number), pixel_limit())
        except UnusableObjectError as error:
            reason = str(error)
        return BadSample(path, None, reason or "could not be read or decoded when its turn came")

    def _content(self, number: int) -> bytes:
        try:
            with open(self.paths[number], "rb") as file:
                return file.read()
        except OSError as error:
            raise UnusableObjectError(f"cannot be read: {error.strerror or error}") from error


class ImageObjects(ImageFiles):
    """Image files on an object store. Those that come next are requested ahead, many at once, in their order.

    Args:
      objects: the listing's entry for each file.
    """

    def __init__(
        self,
        paths: Sequence[str],
        labels: np.ndarray,
        names: Sequence[str],
        reader: Reader,
        objects: Sequence[StoredObject],
    ) -> None:
        super().__init__(paths, labels, names, reader)
        self.fetchers = 1  # the requests have threads of their own
        self.read = refuse_empty
        self._objects, self._cache = objects, data_cache()
        self._decoded: ArrayCache | None = None
        self.lookahead = requests_ahead(reader.num_readers)
        self._threads = RequestThreads(requests_at_once(reader.num_readers))
        self._contents = LookAhead(self._request, 8 * self.lookahead)

    @property
    def versions(self) -> Sequence[str]:
        return [f"{item.url}:{item.length}:{item.version}" for item in self._objects]

    def skip_cached(self, cache: ArrayCache) -> None:
        self._decoded = cache

    def prefetch(self, numbers: np.ndarray) -> None:
        self._contents.expect(numbers.tolist())

    def _fetch(self, numbers: np.ndarray, paths: np.ndarray) -> np.ndarray:
        return np.array(self._contents.take(numbers.tolist()), object)

    def _request(self, numbers: list[int]) -> Mapping[int, Future[bytes]]:
        return {number: self._threads.submit(self._content_or_empty, number) for number in numbers}

    def _content_or_empty(self, number: int) -> bytes:
        """Returns b"" for an object that cannot be used; `explain` finds out why. Raises if the store is down."""
        if self._decoded is not None and self._decoded.has(number):
            return b""
        try:
            return self._content(number)
        except UnusableObjectError:
            return b""

    def _content(self, number: int) -> bytes:
        item = self._objects[number]
        cached = self._cache.read(item) if self._cache else None
        if cached is not None:
            return cached
        content, is_listed_version = read_object(item)
        if self._cache and is_listed_version:
            self._cache.write(item, content)
        return content


def image_samples(
    paths: Sequence[str],
    labels: np.ndarray,
    names: Sequence[str],
    reader: Reader,
    objects: Sequence[StoredObject] | None,
) -> ImageFiles:
    """Returns the samples of an image dataset.

    Args:
      paths: the files, local or on an object store.
      labels: the label of each file.
      names: the class name of each file.
      reader: reads local files.
      objects: for files on an object store, the listing's entry for each.
    """
    if objects is None:
        return ImageFiles(paths, labels, names, reader)
    return ImageObjects(paths, labels, names, reader, objects)

"""Image files with their labels, by number: on a local disk, or on an object store."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.array_cache import ArrayCache
from moxing.tensorflow.datasets.journal import BadSample
from moxing.tensorflow.datasets.reader.readers import Reader, refuse_empty
from moxing.tensorflow.datasets.sample_source import byte_strings
from moxing.tensorflow.datasets.stored.data_cache import data_cache
from moxing.tensorflow.datasets.stored.look_ahead import LookAhead, RequestThreads, requests_ahead, requests_at_once
from moxing.tensorflow.datasets.stored.objects import StoredObject, UnusableObjectError, read_object
from moxing.tensorflow.preprocessing.decoding import explain, pixel_limit


class ImageFiles:
    """Image files on a local disk."""

    def __init__(self, paths: Sequence[str], labels: np.ndarray, names: Sequence[str], reader: Reader) -> None:
        self.paths, self._labels, self.reader = paths, labels, reader
        self._names = byte_strings(os.fsencode(name) for name in names)
        text = tf.TensorSpec([], tf.string)
        label = tf.TensorSpec(labels.shape[1:], tf.as_dtype(labels.dtype))
        self.columns: Mapping[str, tf.TensorSpec] = {
            "fetched": text, "label": label, "label_desc": text, "image_name": text,
        }  # fmt: skip

    @property
    def versions(self) -> Sequence[str]:
        """Names for a cache: what has changed has another one, or can be looked at."""
        return self.paths

    @property
    def fetchers(self) -> int:
        """How many calls of `fetch` are made at once."""
        return self.reader.fetchers

    def skip_cached(self, cache: ArrayCache | None) -> None:
        """What is in `cache` need not be fetched. Of local files only the paths are, so nothing is saved."""

    def fetch(self, numbers: np.ndarray) -> list[np.ndarray]:
        paths = byte_strings(os.fsencode(self.paths[number]) for number in numbers)
        names = byte_strings(os.path.basename(path) for path in paths)
        return [self._fetch(numbers, paths), self._labels[numbers], self._names[numbers], names]

    def _fetch(self, numbers: np.ndarray, paths: np.ndarray) -> np.ndarray:
        return self.reader.fetch(paths)

    def read(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        return self.reader.read(features["fetched"])

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
    """Image files on a store: those that come next are asked for ahead, many at once, in the order of the data."""

    fetchers = 1  # The requests have threads of their own.

    def __init__(
        self,
        paths: Sequence[str],
        labels: np.ndarray,
        names: Sequence[str],
        reader: Reader,
        objects: Sequence[StoredObject],
    ) -> None:
        super().__init__(paths, labels, names, reader)
        self._objects, self._cache = objects, data_cache()
        self._decoded: ArrayCache | None = None
        self.lookahead = requests_ahead(reader.num_readers)
        self._threads = RequestThreads(requests_at_once(reader.num_readers))
        self._contents = LookAhead(self._begin, 8 * self.lookahead)

    @property
    def versions(self) -> Sequence[str]:
        return [f"{item.url}:{item.length}:{item.version}" for item in self._objects]

    def skip_cached(self, cache: ArrayCache | None) -> None:
        self._decoded = cache

    def expect(self, numbers: np.ndarray) -> None:
        """Asks the store for what is fetched next."""
        self._contents.expect(numbers.tolist())

    def _fetch(self, numbers: np.ndarray, paths: np.ndarray) -> np.ndarray:
        return byte_strings(self._contents.take(numbers.tolist()))

    def read(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        return refuse_empty(features["fetched"])

    def _begin(self, numbers: list[int]) -> Mapping[int, Future[bytes]]:
        return {number: self._threads.submit(self._content_or_nothing, number) for number in numbers}

    def _content_or_nothing(self, number: int) -> bytes:
        """An object that cannot be used is an empty one here; `explain` finds out why. A store that is away raises."""
        if self._decoded is not None and self._decoded.has(number):
            return b""
        try:
            return self._content(number)
        except UnusableObjectError:
            return b""

    def _content(self, number: int) -> bytes:
        item = self._objects[number]
        kept = self._cache.read(item) if self._cache else None
        if kept is not None:
            return kept
        content, is_listed = read_object(item)
        if self._cache and is_listed:
            self._cache.write(item, content)
        return content


def image_samples(
    paths: Sequence[str],
    labels: np.ndarray,
    names: Sequence[str],
    reader: Reader,
    objects: Sequence[StoredObject] | None,
) -> ImageFiles:
    """The samples of a raw data set.

    Args:
      paths: the files, local or on a store.
      labels: for each its label.
      names: for each the name of its class.
      reader: reads local files.
      objects: for files on a store, what the listing says of each.
    """
    if objects is None:
        return ImageFiles(paths, labels, names, reader)
    return ImageObjects(paths, labels, names, reader, objects)

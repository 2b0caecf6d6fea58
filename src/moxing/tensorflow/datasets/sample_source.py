"""From numbered samples to a `tf.data.Dataset` that can begin anywhere and survives samples that cannot be read.

    positions ─► numbers (SampleOrder) ─► fetch, many at a time ─► read, in parallel, may fail ─► gaps are noted

A sample is numbered before it is read, so a gap in the numbers afterwards tells which one was bad.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.journal import BadSample, Journal, guarded
from moxing.tensorflow.datasets.sample_order import SampleOrder
from moxing.tf1.datasets import handle

#: Samples that one call from TensorFlow into Python asks for.
_CHUNK = 64

_ENDLESS = 2**62

#: Names of the features that every sample carries beside its own.
POSITION, NUMBER, SEED = "moxing/position", "moxing/number", "moxing/seed"
HIDDEN = (POSITION, NUMBER, SEED)

Features = dict[str, tf.Tensor]


class Samples(Protocol):
    """Numbered samples."""

    #: What `fetch` returns: name, and type and shape for one sample.
    columns: Mapping[str, tf.TensorSpec]

    def fetch(self, numbers: np.ndarray) -> list[np.ndarray]:
        """The columns of these samples. It does not raise: what is wrong with a sample shows when it is read."""

    def explain(self, number: int) -> BadSample:
        """Why a sample cannot be read; called for those that failed."""


class Resumable(Protocol):
    """Makes a data set that can begin anywhere."""

    @property
    def endless(self) -> bool:
        """True when the data has no end."""

    def build(self, start: int = 0) -> tf.data.Dataset:
        """The data set from the position `start` on, in the current graph."""

    def position_after(self, start: int, elements: int) -> int:
        """The position behind `elements` elements of a data set that began at `start`."""


@dataclass(eq=False)
class SampleSource:
    """Samples in an order, read by TensorFlow operations.

    Attributes:
      samples: where they come from.
      order: which one comes when.
      seed: of random work on samples.
      journal: is told of samples that cannot be read.
      stages: functions from the columns of a sample to its features, each with the number of samples that it works on
        at once; a sample on which one of them fails is left out.
      capacity: fetched samples that wait for the stages.
      fetchers: how many chunks of samples are fetched at once.
      finish: makes of the samples what the data set delivers; batches, for instance.
      samples_per_element: how many samples are in one element after `finish`.
    """

    samples: Samples
    order: SampleOrder
    seed: tuple[int, int]
    journal: Journal
    stages: list[tuple[Callable[[Features], Features], int]]
    capacity: int = 256
    fetchers: int = 1
    finish: Callable[[tf.data.Dataset], tf.data.Dataset] = lambda dataset: dataset
    samples_per_element: int = 1
    _gaps: list[int] = field(default_factory=list)

    @property
    def endless(self) -> bool:
        """True when the data has no end."""
        return self.order.total is None

    def build(self, start: int = 0) -> tf.data.Dataset:
        """The data set from the position `start` on, in the current graph."""
        end = _ENDLESS if self.order.total is None else self.order.total
        watch = _Watch(self, start)
        dataset = tf.data.Dataset.range(start, end, _CHUNK).take_while(watch.goes_on)
        dataset = dataset.map(lambda first: self._fetch(first, watch), num_parallel_calls=self.fetchers)
        dataset = dataset.unbatch().prefetch(self.capacity)
        for stage, parallel in self.stages:
            dataset = dataset.map(self._keeping_position(stage), num_parallel_calls=parallel)
        dataset = dataset.ignore_errors()
        # What is missing at the very end shows only against something that comes after it.
        dataset = dataset.concatenate(tf.data.Dataset.from_tensors(_stand_in(dataset.element_spec, end)))
        dataset = dataset.scan(np.int64(start), watch.step).filter(lambda features: features[POSITION] < end)
        return made_by(self, self.finish(dataset))

    def in_flight(self) -> int:
        """The most positions that are fetched and have not come out of the stages yet."""
        return _CHUNK * (self.fetchers + 2) + self.capacity + sum(parallel + 1 for _, parallel in self.stages)

    def note_bad(self, position: int, start: int) -> None:
        """Tells of the sample at a position that it cannot be used."""
        self._gaps.append(position)
        number = int(self.order.numbers(np.array([position]))[0])
        self.journal.add_bad(self.samples.explain(number), read=position + 1 - start)

    def position_after(self, start: int, elements: int) -> int:
        """The position behind `elements` elements of a data set that began at `start`: bad samples count as well."""
        position = start + elements * self.samples_per_element
        for gap in sorted(gap for gap in set(self._gaps) if gap >= start):
            if gap > position:
                break
            position += 1
        return position if self.order.total is None else min(position, self.order.total)

    def _fetch(self, first: tf.Tensor, watch: _Watch) -> Features:
        number = tf.TensorSpec([], tf.int64)
        columns = {POSITION: number, NUMBER: number, **self.samples.columns}
        types = [spec.dtype for spec in columns.values()]

        def fetch_chunk(first: np.ndarray) -> list[np.ndarray]:
            watch.before_fetch(int(first))
            return self._fetch_chunk(int(first))

        values = tf.numpy_function(guarded(self.journal, fetch_chunk), [first], types)
        for value, spec in zip(values, columns.values(), strict=True):
            value.set_shape([None, *spec.shape])
        features = dict(zip(columns, values, strict=True))
        positions = features[POSITION]
        own = tf.fill(tf.shape(positions), np.int64(self.seed[0] << 8 | self.seed[1]))
        return {**features, SEED: tf.stack([own, positions], axis=1)}

    def _fetch_chunk(self, first: int) -> list[np.ndarray]:
        stop = first + _CHUNK if self.order.total is None else min(first + _CHUNK, self.order.total)
        positions: np.ndarray = np.arange(first, stop, dtype=np.int64)
        numbers = self.order.numbers(positions)
        return [positions, numbers, *self.samples.fetch(numbers)]

    @staticmethod
    def _keeping_position(stage: Callable[[Features], Features]) -> Callable[[Features], Features]:
        def read(features: Features) -> Features:
            return {**stage(features), **{name: features[name] for name in HIDDEN}}

        return read


class _Watch:
    """Notices which positions went in and did not come out.

    Usually a gap shows when the next good sample comes. Where none comes for long, what has been fetched since tells:
    only so many samples can be on their way.
    """

    def __init__(self, source: SampleSource, start: int) -> None:
        self._source, self._start = source, start
        self._lock = threading.Lock()
        self._silent_from = start

    def goes_on(self, first: tf.Tensor) -> tf.Tensor:
        """False when the data has failed; without this, TensorFlow would skip errors for ever."""
        good = tf.numpy_function(lambda _: np.bool_(self._source.journal.failure is None), [first], tf.bool)
        return tf.ensure_shape(good, [])

    def before_fetch(self, first: int) -> None:
        """Notes what cannot come any more, before the chunk at `first` is fetched."""
        with self._lock:
            if first == self._start:
                self._silent_from = first  # the iterator begins again
            while self._silent_from < first - self._source.in_flight():
                self._silent_from += 1
                self._source.note_bad(self._silent_from - 1, self._start)

    def step(self, expected: tf.Tensor, features: Features) -> tuple[tf.Tensor, Features]:
        """The function of a `Dataset.scan` over the samples that came out, whose state is the next position."""
        position = features[POSITION]
        # Python hears of gaps, and of every so many samples that all is well.
        usual = tf.logical_and(tf.equal(expected, position), tf.not_equal(position % _CHUNK, 0))
        came = guarded(self._source.journal, self._came)
        noted = tf.cond(usual, lambda: position, lambda: tf.numpy_function(came, [expected, position], tf.int64))
        noted = tf.ensure_shape(noted, [])
        return noted + 1, {**features, POSITION: noted}

    def _came(self, expected: np.ndarray, position: np.ndarray) -> np.ndarray:
        if self._source.journal.failure is not None:
            raise self._source.journal.failure
        with self._lock:
            for gap in range(int(expected), int(position)):
                self._source.note_bad(gap, self._start)
            # Up to the next multiple samples may come out that nothing is said of.
            self._silent_from = max(self._silent_from, (int(position) // _CHUNK + 1) * _CHUNK)
        return position


#: Graph collection of our data sets, each with its source. No string: a meta graph leaves such collections out.
_SOURCES = ("moxing/sources",)


def made_by(source: Resumable, dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Notes which source made a data set; returns the data set."""
    tf.add_to_collection(_SOURCES, (handle(dataset), source))
    return dataset


def source_of(dataset: Any) -> Resumable | None:
    """The source that built `dataset`, or None for a data set of the user's own."""
    wanted = handle(dataset)
    return next((source for made, source in tf.get_collection(_SOURCES) if made is wanted), None)


def with_private_threads(dataset: tf.data.Dataset, count: int) -> tf.data.Dataset:
    """The data set with `count` threads of its own; 0: with TensorFlow's."""
    if not count:
        return dataset
    options = tf.data.Options()
    options.threading.private_threadpool_size = count
    return dataset.with_options(options)


def _stand_in(spec: Any, position: int) -> Any:
    """An element of zeros, with the given position."""
    features = {name: _zeros(part) for name, part in spec.items()}
    return {**features, POSITION: tf.constant(position, tf.int64)}


def _zeros(spec: Any) -> Any:
    shape = [size or 0 for size in spec.shape] if spec.shape.rank is not None else []
    if isinstance(spec, tf.SparseTensorSpec):
        indices = tf.zeros([0, len(shape)], tf.int64)
        return tf.SparseTensor(indices, tf.zeros([0], spec.dtype), tf.constant(shape, tf.int64))
    return tf.zeros(shape, spec.dtype)

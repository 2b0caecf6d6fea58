"""Builds a `tf.data.Dataset` from numbered samples. It can start at any position and skips samples that cannot be read.

    positions ─► numbers (SampleOrder) ─► fetch, many at a time ─► stages, in parallel, may fail ─► log the gaps

A sample is numbered before it is read. A gap in the numbers afterwards therefore tells which sample was bad.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.bad_samples import BadSample, BadSampleLog, NoUsableSamplesError
from moxing.tensorflow.datasets.sample_order import SampleOrder
from moxing.tf1.graph.dataset_properties import variant_tensor

#: Samples per call from TensorFlow into Python.
_CHUNK = 64

_ENDLESS = 2**62

#: Names of the features that every sample has in addition to its own.
POSITION, NUMBER, SEED = "moxing/position", "moxing/number", "moxing/seed"
HIDDEN = (POSITION, NUMBER, SEED)

Features = dict[str, tf.Tensor]


class Samples(ABC):
    """Numbered samples.

    Attributes:
      columns: the type and shape of one sample for each array that `fetch` returns, by name.
      lookahead: how many samples beyond the current chunk `prefetch` is called with; 0 if it is not needed.
    """

    columns: Mapping[str, tf.TensorSpec]
    lookahead: int = 0

    @abstractmethod
    def fetch(self, numbers: np.ndarray) -> list[np.ndarray]:
        """Returns the columns of these samples. Does not raise for a bad sample: it fails in a stage."""

    @abstractmethod
    def explain(self, number: int) -> BadSample:
        """Returns why a sample cannot be read. Called for samples that failed."""

    def prefetch(self, numbers: np.ndarray) -> None:  # noqa: B027  by default there is nothing to start
        """Starts reading the samples that are fetched next, in this order. Does not wait."""


class Resumable(Protocol):
    """Builds a dataset that can start at any position."""

    @property
    def endless(self) -> bool:
        """Whether the data never ends."""

    def build(self, start: int = 0) -> tf.data.Dataset:
        """Builds the dataset from position `start` on, in the current graph."""

    def position_after(self, start: int, elements: int) -> int:
        """Returns the position after `elements` elements of a dataset that started at `start`."""


@dataclass(eq=False)
class SampleSource:
    """Samples in a given order, read by TensorFlow operations.

    Attributes:
      samples: the samples.
      order: the order of the samples.
      seed: the seed of random operations on samples.
      bad_samples: the log of samples that cannot be read.
      stages: functions from the features of a sample to its features, each with the number of samples that it
        processes in parallel. A sample for which one of them fails is skipped.
      capacity: the number of fetched samples that wait for the stages.
      fetchers: the number of chunks that are fetched in parallel.
      finish: turns the dataset of samples into the dataset that is delivered; it may batch, for instance.
      samples_per_element: the number of samples in one element after `finish`.
    """

    samples: Samples
    order: SampleOrder
    seed: tuple[int, int]
    bad_samples: BadSampleLog
    stages: list[tuple[Callable[[Features], Features], int]]
    capacity: int = 256
    fetchers: int = 1
    finish: Callable[[tf.data.Dataset], tf.data.Dataset] = lambda dataset: dataset
    samples_per_element: int = 1
    _gaps: list[int] = field(default_factory=list)

    @property
    def endless(self) -> bool:
        """Whether the data never ends."""
        return self.order.total is None

    def build(self, start: int = 0) -> tf.data.Dataset:
        """Builds the dataset from position `start` on, in the current graph."""
        end = _ENDLESS if self.order.total is None else self.order.total
        dataset = tf.data.Dataset.range(start, end, _CHUNK)
        # Always deterministic, whatever the user's options say: a sample that comes late would count as bad.
        dataset = dataset.map(self._fetch, num_parallel_calls=self.fetchers, deterministic=True)
        dataset = dataset.unbatch().prefetch(self.capacity)
        for stage, parallel in self.stages:
            dataset = dataset.map(_keep_hidden_features(stage), num_parallel_calls=parallel, deterministic=True)
        # The next element reveals a gap. A marker, which is never bad, follows every chunk. Without markers, gaps at
        # the end would go unnoticed, and TensorFlow would skip bad samples forever if all samples are bad.
        markers = _markers(dataset.element_spec, start, end)
        turns = tf.data.Dataset.from_tensor_slices(np.repeat(np.int64([0, 1]), [_CHUNK, 1])).repeat()
        dataset = tf.data.Dataset.choose_from_datasets([dataset, markers], turns, stop_on_empty_dataset=False)
        dataset = dataset.ignore_errors().scan((np.int64(start), np.int64(start)), self._log_gaps(start))
        dataset = dataset.filter(lambda features: features[NUMBER] >= 0)
        return register_source(self, self.finish(dataset))

    def shard(self, workers: int, index: int) -> SampleSource:
        """Returns the samples of worker `index`: every `workers`-th one. The other samples are not read."""
        # All workers have the same positions; random operations on samples must still differ between them.
        seed = (self.seed[0] * workers + index, self.seed[1])
        return replace(self, order=self.order.shard(workers, index), seed=seed, _gaps=[])

    def position_after(self, start: int, elements: int) -> int:
        """Returns the position after `elements` elements of a dataset that started at `start`; counts bad samples."""
        position = start + elements * self.samples_per_element
        for gap in sorted(gap for gap in set(self._gaps) if gap >= start):
            if gap > position:
                break
            position += 1
        return position if self.order.total is None else min(position, self.order.total)

    def _fetch(self, first: tf.Tensor) -> Features:
        number = tf.TensorSpec([], tf.int64)
        columns = {POSITION: number, NUMBER: number, **self.samples.columns}
        types = [spec.dtype for spec in columns.values()]
        values = tf.numpy_function(keep_errors(self.bad_samples, self._fetch_chunk), [first], types)
        for value, spec in zip(values, columns.values(), strict=True):
            value.set_shape([None, *spec.shape])
        features = dict(zip(columns, values, strict=True))
        positions = features[POSITION]
        own = tf.fill(tf.shape(positions), np.int64(self.seed[0] << 8 | self.seed[1]))
        return {**features, SEED: tf.stack([own, positions], axis=1)}

    def _fetch_chunk(self, first: np.ndarray) -> list[np.ndarray]:
        self.bad_samples.check()
        positions = self._positions(int(first), _CHUNK)
        numbers = self.order.numbers(positions)
        if self.samples.lookahead:
            self.samples.prefetch(self.order.numbers(self._positions(int(first), _CHUNK + self.samples.lookahead)))
        return [positions, numbers, *self.samples.fetch(numbers)]

    def _positions(self, first: int, count: int) -> np.ndarray:
        end = _ENDLESS if self.order.total is None else self.order.total
        return np.arange(first, min(first + count, end), dtype=np.int64)

    def _log_gaps(self, start: int) -> Callable[[Any, Features], tuple[Any, Features]]:
        """Returns the function of a `Dataset.scan`. Its state: the next position, the end of the last good sample."""

        def log(expected: np.ndarray, position: np.ndarray, good: np.ndarray) -> np.ndarray:
            self.bad_samples.check()
            for gap in range(int(expected), int(position)):
                self._log_bad_sample(gap, start)
            # Twice as many bad samples in a row as there are samples include a whole epoch, wherever they begin.
            none_at_all = good == 0 and position == self.order.total
            if none_at_all or position - good >= 2 * self.order.count:
                bad = "\n".join(f"  {sample}" for sample in self.bad_samples.samples[:3])
                raise NoUsableSamplesError(f"None of the {self.order.count} samples can be read:\n{bad}")
            return position

        def step(state: tuple[tf.Tensor, tf.Tensor], features: Features) -> tuple[Any, Features]:
            (expected, good), position, is_sample = state, features[POSITION], features[NUMBER] >= 0
            logged = tf.cond(
                tf.equal(expected, position),
                lambda: position,
                lambda: tf.numpy_function(keep_errors(self.bad_samples, log), [expected, position, good], tf.int64),
            )
            logged = tf.ensure_shape(logged, [])
            after = tf.where(is_sample, logged + 1, logged)
            return (after, tf.where(is_sample, after, good)), {**features, POSITION: logged}

        return step

    def _log_bad_sample(self, position: int, start: int) -> None:
        self._gaps.append(position)
        number = int(self.order.numbers(np.array([position]))[0])
        self.bad_samples.add(self.samples.explain(number), read=position + 1 - start)


def keep_errors(log: BadSampleLog, function: Callable[..., object]) -> Callable[..., object]:
    """Wraps a Python function that a dataset calls: `log` keeps its exception, which TensorFlow would replace."""

    @tf.autograph.experimental.do_not_convert
    def call(*arguments: object) -> object:
        try:
            return function(*arguments)
        except Exception as error:
            log.fail(error)
            raise

    return call


#: Graph collection of pairs (dataset, its source). The name is not a string: a meta graph omits such collections.
_SOURCES = ("moxing/sources",)


def register_source(source: Resumable, dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Registers the source of a dataset, for `source_of`; returns the dataset."""
    tf.add_to_collection(_SOURCES, (variant_tensor(dataset), source))
    return dataset


def source_of(dataset: Any) -> Resumable | None:
    """Returns the source that built `dataset`, or None for a dataset of the user's."""
    wanted = variant_tensor(dataset)
    return next((source for built, source in tf.get_collection(_SOURCES) if built is wanted), None)


def with_private_threads(dataset: tf.data.Dataset, count: int) -> tf.data.Dataset:
    """Returns the dataset with `count` threads of its own."""
    options = tf.data.Options()
    options.threading.private_threadpool_size = count
    return dataset.with_options(options)


def _keep_hidden_features(stage: Callable[[Features], Features]) -> Callable[[Features], Features]:
    """Wraps a stage so that position, number and seed of the sample stay among its features."""

    def run(features: Features) -> Features:
        return {**stage(features), **{name: features[name] for name in HIDDEN}}

    return run


def _markers(spec: Any, start: int, end: int) -> tf.data.Dataset:
    """Returns one element per chunk: all zeros, the number -1, and the position after the chunk."""

    def marker(first: tf.Tensor) -> Features:
        features = {name: _zeros(part) for name, part in spec.items()}
        return {**features, POSITION: tf.minimum(first + _CHUNK, end), NUMBER: tf.constant(-1, tf.int64)}

    return tf.data.Dataset.range(start, end, _CHUNK).map(marker)


def _zeros(spec: Any) -> Any:
    shape = [size or 0 for size in spec.shape] if spec.shape.rank is not None else []
    if isinstance(spec, tf.SparseTensorSpec):
        indices = tf.zeros([0, len(shape)], tf.int64)
        return tf.SparseTensor(indices, tf.zeros([0], spec.dtype), tf.constant(shape, tf.int64))
    return tf.zeros(shape, spec.dtype)

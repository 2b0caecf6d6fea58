"""From numbered samples to a `tf.data.Dataset` that can begin anywhere and survives samples that cannot be read.

    positions ─► numbers (SampleOrder) ─► fetch, many at a time ─► read, in parallel, may fail ─► gaps are noted

A sample is numbered before it is read, so a gap in the numbers afterwards tells which one was bad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

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


@runtime_checkable
class Foreseen(Protocol):
    """Samples that want to know ahead which of them come next."""

    #: How many.
    lookahead: int

    def expect(self, numbers: np.ndarray) -> None:
        """These are fetched next, in this order; does not wait."""


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
        dataset = tf.data.Dataset.range(start, end, _CHUNK)
        # In order, whatever the user's options say: a sample that comes late would be taken for a bad one.
        dataset = dataset.map(self._fetch, num_parallel_calls=self.fetchers, deterministic=True)
        dataset = dataset.unbatch().prefetch(self.capacity)
        for stage, parallel in self.stages:
            dataset = dataset.map(self._keeping_position(stage), num_parallel_calls=parallel, deterministic=True)
        # A gap shows against what comes after it. After every chunk comes a milestone, which is never bad: without
        # them, nothing would show at the very end, and TensorFlow would skip bad samples for ever if all are bad.
        milestones = _milestones(dataset.element_spec, start, end)
        turns = tf.data.Dataset.from_tensor_slices(np.repeat(np.int64([0, 1]), [_CHUNK, 1])).repeat()
        dataset = tf.data.Dataset.choose_from_datasets([dataset, milestones], turns, stop_on_empty_dataset=False)
        dataset = dataset.ignore_errors().scan((np.int64(start), np.int64(start)), self._notice_gaps(start))
        dataset = dataset.filter(lambda features: features[NUMBER] >= 0)
        return made_by(self, self.finish(dataset))

    def shard(self, workers: int, index: int) -> SampleSource:
        """The samples of worker `index`: every `workers`-th one, beginning with its own. Others are not read."""
        # A position of one worker is a position of every other: random work on samples must not repeat theirs.
        seed = (self.seed[0] * workers + index, self.seed[1])
        return replace(self, order=self.order.shard(workers, index), seed=seed, _gaps=[])

    def position_after(self, start: int, elements: int) -> int:
        """The position behind `elements` elements of a data set that began at `start`: bad samples count as well."""
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
        values = tf.numpy_function(guarded(self.journal, self._fetch_chunk), [first], types)
        for value, spec in zip(values, columns.values(), strict=True):
            value.set_shape([None, *spec.shape])
        features = dict(zip(columns, values, strict=True))
        positions = features[POSITION]
        own = tf.fill(tf.shape(positions), np.int64(self.seed[0] << 8 | self.seed[1]))
        return {**features, SEED: tf.stack([own, positions], axis=1)}

    def _fetch_chunk(self, first: np.ndarray) -> list[np.ndarray]:
        self.journal.check()
        positions = self._positions(int(first), _CHUNK)
        numbers = self.order.numbers(positions)
        if isinstance(self.samples, Foreseen):
            self.samples.expect(self.order.numbers(self._positions(int(first), _CHUNK + self.samples.lookahead)))
        return [positions, numbers, *self.samples.fetch(numbers)]

    def _positions(self, first: int, count: int) -> np.ndarray:
        end = _ENDLESS if self.order.total is None else self.order.total
        return np.arange(first, min(first + count, end), dtype=np.int64)

    @staticmethod
    def _keeping_position(stage: Callable[[Features], Features]) -> Callable[[Features], Features]:
        def read(features: Features) -> Features:
            return {**stage(features), **{name: features[name] for name in HIDDEN}}

        return read

    def _notice_gaps(self, start: int) -> Callable[[Any, Features], tuple[Any, Features]]:
        """The function of a `Dataset.scan` whose state is the next position and the one behind the last good sample."""

        def note(expected: np.ndarray, position: np.ndarray, good: np.ndarray) -> np.ndarray:
            self.journal.check()
            for gap in range(int(expected), int(position)):
                self._note_bad(gap, start)
            # Twice as many in a row as there are hold a whole epoch, wherever they begin.
            none_at_all = good == 0 and position == self.order.total
            if none_at_all or position - good >= 2 * self.order.count:
                bad = "\n".join(f"  {sample}" for sample in self.journal.bad[:3])
                raise ValueError(f"Not one of {self.order.count} samples can be used:\n{bad}")
            return position

        def step(state: tuple[tf.Tensor, tf.Tensor], features: Features) -> tuple[Any, Features]:
            (expected, good), position, is_sample = state, features[POSITION], features[NUMBER] >= 0
            noted = tf.cond(
                tf.equal(expected, position),
                lambda: position,
                lambda: tf.numpy_function(guarded(self.journal, note), [expected, position, good], tf.int64),
            )
            noted = tf.ensure_shape(noted, [])
            after = tf.where(is_sample, noted + 1, noted)
            return (after, tf.where(is_sample, after, good)), {**features, POSITION: noted}

        return step

    def _note_bad(self, position: int, start: int) -> None:
        self._gaps.append(position)
        number = int(self.order.numbers(np.array([position]))[0])
        self.journal.add_bad(self.samples.explain(number), read=position + 1 - start)


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


def byte_strings(values: Iterable[bytes]) -> np.ndarray:
    """An array of byte strings as TensorFlow takes them.

    NumPy by itself makes an array of fixed-length strings, which loses zero bytes at the end.

    Example:
      >>> byte_strings([b'a', b'bc']).dtype
      dtype('O')
    """
    return np.array([*values, None], object)[:-1]


def with_private_threads(dataset: tf.data.Dataset, count: int) -> tf.data.Dataset:
    """The data set with `count` threads of its own; 0: with TensorFlow's."""
    if not count:
        return dataset
    options = tf.data.Options()
    options.threading.private_threadpool_size = count
    return dataset.with_options(options)


def _milestones(spec: Any, start: int, end: int) -> tf.data.Dataset:
    """After each chunk an element of zeros, without a number, whose position is behind the chunk."""

    def milestone(first: tf.Tensor) -> Features:
        features = {name: _zeros(part) for name, part in spec.items()}
        return {**features, POSITION: tf.minimum(first + _CHUNK, end), NUMBER: tf.constant(-1, tf.int64)}

    return tf.data.Dataset.range(start, end, _CHUNK).map(milestone)


def _zeros(spec: Any) -> Any:
    shape = [size or 0 for size in spec.shape] if spec.shape.rank is not None else []
    if isinstance(spec, tf.SparseTensorSpec):
        indices = tf.zeros([0, len(shape)], tf.int64)
        return tf.SparseTensor(indices, tf.zeros([0], spec.dtype), tf.constant(shape, tf.int64))
    return tf.zeros(shape, spec.dtype)

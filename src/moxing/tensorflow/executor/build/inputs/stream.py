"""One iterator of `input_fn`: where it starts, and which part of it a worker reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.sample_source import Resumable, SampleSource, source_of
from moxing.tensorflow.executor.build.inputs.share import EVERYTHING, Share
from moxing.tensorflow.executor.checkpoints.position import Position
from moxing.tf1.graph.dataset_properties import is_endless, is_sharded
from moxing.tf1.graph.iterators import RecordedIterator
from moxing.tf1.graph.surgery import CannotRebuild


@dataclass(frozen=True)
class Stream:
    """An iterator that `input_fn` took elements from.

    Attributes:
      iterator: the iterator.
      group: elements of the dataset per sample of `input_fn`: how many times it called `get_next`.
      source: the MoXing dataset behind it, which can start at any sample; None for a plain `tf.data.Dataset`.
      endless: true when the data never ends.
      is_sharded_by_user: true when `input_fn` sharded the dataset itself.
      start: where to start: a sample of a MoXing dataset, an element of any other.
      share: the part that this worker reads.
    """

    iterator: RecordedIterator
    group: int
    source: Resumable | None
    endless: bool
    is_sharded_by_user: bool
    start: int = 0
    share: Share = EVERYTHING

    @classmethod
    def of(cls, iterator: RecordedIterator) -> Stream:
        """The stream of an iterator, from its start and for one worker."""
        source = source_of(iterator.dataset)
        return cls(
            iterator,
            group=len(iterator.elements),
            source=source,
            endless=is_endless(iterator.dataset) if source is None else source.endless,
            is_sharded_by_user=is_sharded(iterator.dataset),
        )

    @property
    def size(self) -> int:
        """The number of samples in an epoch of a MoXing dataset; -1 for other datasets."""
        return self.source.order.count if isinstance(self.source, SampleSource) else -1

    def shard(self, share: Share) -> Stream:
        """The part of the stream that one worker reads."""
        if self.group == 1 and isinstance(self.source, SampleSource):
            # Does not even read the samples of other workers.
            source = self.source.shard(share.workers, share.index)
            # `start` counts the samples of all workers.
            own_start = max(0, -((share.index - self.start) // share.workers))
            return replace(self, source=source, start=own_start, share=share)
        return replace(self, share=share)

    def sample_after(self, elements: int) -> int | None:
        """The next sample of a MoXing dataset after `elements` samples of `input_fn`; None for other datasets."""
        return None if self.source is None else self.source.position_after(self.start, elements * self.group)

    def dataset(self) -> tf.data.Dataset:
        """The data of this stream, from `start` on."""
        workers = self.share.workers
        if self.source is not None:
            sharded = workers > 1 and self.group == 1 and isinstance(self.source, SampleSource)
            dataset = self.source.build(self.start) if self.start or sharded else self.iterator.dataset
            if sharded:
                return dataset
        else:
            # Skips before the per-sample work of the user: skipped elements are not decoded.
            dataset = self.iterator.dataset.skip(self.start) if self.start else self.iterator.dataset
        dataset = _grouped(dataset, self.group)
        return dataset.shard(workers, self.share.index) if workers > 1 else dataset


def streams_at(iterators: Sequence[RecordedIterator], position: Position) -> list[Stream]:
    """The streams of the iterators that `input_fn` took elements from, each starting at `position`.

    Raises:
      CannotRebuild: for a feedable iterator.
    """
    samples = iter(position.samples)
    streams = []
    for iterator in iterators:
        if not iterator.elements:
            continue
        if iterator.real is not None:
            raise CannotRebuild("a feedable iterator")
        stream = Stream.of(iterator)
        start = position.elements * stream.group
        if stream.source is not None:
            start = next(samples, stream.source.position_after(0, start))
        streams.append(replace(stream, start=start))
    return streams


def _grouped(dataset: tf.data.Dataset, count: int) -> tf.data.Dataset:
    """Groups `count` consecutive elements into one."""
    if count == 1:
        return dataset

    def consecutive(*windows: Any) -> Any:
        structure = windows[0] if len(windows) == 1 else windows
        return tuple(
            tf.nest.map_structure(
                lambda window, index=index: tf.data.experimental.get_single_element(window.skip(index).take(1)),
                structure,
            )
            for index in range(count)
        )

    return dataset.window(count, drop_remainder=True).map(consecutive)

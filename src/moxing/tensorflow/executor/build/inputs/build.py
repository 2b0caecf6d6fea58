"""`build_inputs`: from `input_fn` to the batches of all towers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.sample_source import SampleSource
from moxing.tensorflow.executor.build.inputs.inputs import (
    Inputs,
    InputStructure,
    Leaf,
    Probe,
    RecordedInput,
    record_input_fn,
)
from moxing.tensorflow.executor.build.inputs.lifting import lift
from moxing.tensorflow.executor.build.inputs.limit import first_samples
from moxing.tensorflow.executor.build.inputs.queues import queue_inputs
from moxing.tensorflow.executor.build.inputs.share import EVERYTHING, Share, with_padding_batches
from moxing.tensorflow.executor.build.inputs.stream import Stream, streams_at
from moxing.tensorflow.executor.checkpoints.position import START, Position
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.specs import ModeKeys
from moxing.tf1.graph.surgery import CannotRebuild

#: Batches that an evaluation prefetches.
_EVALUATION_PREFETCH = 2


@dataclass(frozen=True)
class _Pipeline:
    """The batches that this worker reads.

    Attributes:
      batches: the dataset; its elements are batches, leaf by leaf.
      streams: the streams behind it, as this worker reads them.
      unsharded: the same streams before they were sharded between workers.
      endless: true when the data never ends.
    """

    batches: tf.data.Dataset
    streams: Sequence[Stream]
    unsharded: Sequence[Stream]
    endless: bool


def build_inputs(
    config: RunConfig,
    mode: ModeKeys,
    position: Position = START,
    with_probe: bool = False,
    share: Share = EVERYTHING,
    limit: tf.Tensor | None = None,
) -> Inputs:
    """Calls `input_fn` and builds the input in the current graph.

    Args:
      config: the run.
      mode: the mode that `input_fn` is called with.
      position: where in the data to start.
      with_probe: also build `Inputs.probe`.
      share: the part of the data that this process reads.
      limit: the number of samples that all workers read together, -1 for all; read when the initializers are run. For
        data that is read again and again, as in an evaluation.
    """
    with tf.name_scope("input"), tf.device("/cpu:0"):
        recorded = record_input_fn(config.input_fn, mode, share.workers)
        try:
            streams = streams_at(recorded.iterators, position)
            pipeline = _build_pipeline(config, recorded, streams, position.elements, share, limit)
        except CannotRebuild as reason:
            tf.logging.debug("The input stays as input_fn built it: %s.", reason)
            return queue_inputs(config, recorded, share.towers)
        batches = pipeline.batches
        waits_for_others = share.workers > 1 and share.in_step
        padded = (share.towers > 1 or waits_for_others) and not pipeline.endless
        if padded:
            padding = _padding_batches(config, recorded.structure, pipeline)
            batches = with_padding_batches(batches, padding, None if waits_for_others else share.towers - 1)
        prefetched = batches.prefetch(tf.data.experimental.AUTOTUNE) if limit is None else _restartable(batches)
        iterator = tf.data.make_initializable_iterator(prefetched)
        elements = _consecutive(iterator, share.towers)
        return Inputs(
            recorded.structure,
            towers=[element[:-1] if padded else element for element in elements],
            present=[element[-1] for element in elements] if padded else [],
            initializers=[iterator.initializer],
            elements_per_step=share.towers * (config.batch_size if config.batches and config.batch_size else 1),
            workers=pipeline.streams[0].share.workers if pipeline.streams else 1,
            probe=_probe(pipeline.batches) if with_probe else None,
            first_element=position.elements,
            endless=pipeline.endless,
            streams=pipeline.streams,
        )


def _build_pipeline(
    config: RunConfig,
    recorded: RecordedInput,
    unsharded: Sequence[Stream],
    first_element: int,
    share: Share,
    limit: tf.Tensor | None,
) -> _Pipeline:
    """Builds the dataset of this worker.

    Args:
      config: the run.
      recorded: what `input_fn` returned.
      unsharded: the iterators of `input_fn`, each with its start.
      first_element: where to start if there are no iterators.
      share: the part of the data that this worker reads.
      limit: the number of samples that all workers read together, -1 for all; None for no limit.

    Raises:
      CannotRebuild: when the input cannot be a dataset.
    """
    for stream in unsharded:
        if config.batches and isinstance(stream.source, SampleSource) and stream.source.samples_per_element > 1:
            raise ValueError(
                f"mox.run(batch_size={config.batch_size}): the dataset of input_fn already makes batches of "
                f"{stream.source.samples_per_element}. Remove one batch_size, or pass auto_batch=False."
            )
    by_user = recorded.asked_for_rank or any(stream.is_sharded_by_user for stream in unsharded)
    shards = share.workers > 1 and not by_user
    # Cutting ready-made batches to a limit needs the lengths of all batches before: cut first, then shard.
    shards_batches = shards and limit is not None and not config.batches
    streams = [stream.shard(share) for stream in unsharded] if shards and not shards_batches else unsharded
    if limit is not None and not shards_batches:
        limit = tf.where(limit < 0, limit, share.part_of(limit))
    batches = _batches(config, recorded.structure, streams, first_element, limit)
    if shards_batches:
        batches = batches.shard(share.workers, share.index)
    return _Pipeline(batches, streams, unsharded, endless=all(stream.endless for stream in streams))


def _padding_batches(config: RunConfig, structure: InputStructure, pipeline: _Pipeline) -> tf.data.Dataset:
    """The data of all workers from its start: its first batch is there even where a worker has no data."""
    return _batches(config, structure, [replace(stream, start=0) for stream in pipeline.unsharded], 0)


def _batches(
    config: RunConfig,
    structure: InputStructure,
    streams: Sequence[Stream],
    first_element: int,
    limit: tf.Tensor | None = None,
) -> tf.data.Dataset:
    datasets = [stream.dataset() for stream in streams]
    dataset = lift(structure.leaves, [stream.iterator for stream in streams], datasets, first_element)
    if config.batch_size is None or not config.batches:
        return dataset if limit is None else first_samples(dataset, limit)
    endless = all(stream.endless for stream in streams)
    if limit is not None:
        dataset, endless = dataset.take(limit), False
    return _batched(dataset, structure.leaves, config.batch_size, endless)


def _batched(dataset: tf.data.Dataset, leaves: Sequence[Leaf], batch_size: int, endless: bool) -> tf.data.Dataset:
    """Batches the samples of a dataset; samples of different sizes are padded with zeros to the longest.

    The last, short batch is kept. An endless dataset has none, and `model_fn` sees a fixed batch dimension.

    Args:
      dataset: the samples.
      leaves: the tensors of a sample.
      batch_size: samples per batch.
      endless: true when the data never ends.
    """
    dense = [leaf for leaf in leaves if isinstance(leaf, tf.Tensor)]
    if all(leaf.shape.is_fully_defined() for leaf in dense):
        return dataset.batch(batch_size, drop_remainder=endless)
    if len(dense) != len(leaves):
        raise ValueError(
            "input_fn returned sparse tensors together with dense tensors of unknown size, which cannot be padded: "
            "set the size of the dense tensors with set_shape, or batch in input_fn and pass auto_batch=False."
        )
    if any(leaf.shape.rank is None for leaf in dense):
        dataset = _with_ranks(dataset)
    shapes = tf.data.get_output_shapes(dataset)
    return dataset.padded_batch(batch_size, shapes, drop_remainder=endless)


def _with_ranks(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Reads one sample to find ranks that the graph does not know, such as those of a `tf.py_func`."""
    first = tf.data.make_initializable_iterator(dataset.take(1))
    sample = first.get_next()
    with tf.Session() as session:
        session.run([tf.tables_initializer(), tf.global_variables_initializer()])
        session.run(first.initializer)
        values = session.run(tf.nest.flatten(sample))

    def with_rank(*element: Any) -> Any:
        tensors = tf.nest.flatten(element)
        for tensor, value in zip(tensors, values, strict=True):
            if tensor.shape.rank is None:
                tensor.set_shape([None] * getattr(value, "ndim", 0))
        return tuple(tensors)

    return dataset.map(with_rank)


def _restartable(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Prefetches for an iterator that is initialized again and again.

    Autotuning is off: each initialization would wait 0.3 to 1 s for the last autotuning to end.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return batches.prefetch(_EVALUATION_PREFETCH).with_options(options)


def _consecutive(iterator: Any, count: int) -> list[list[Leaf]]:
    """The next `count` elements of an iterator, in order."""
    elements: list[list[Leaf]] = []
    for _ in range(count):
        before = tf.nest.flatten(elements[-1:], expand_composites=True)[:1]
        with tf.control_dependencies(before):
            elements.append(tf.nest.flatten(iterator.get_next()))
    return elements


def _probe(batches: tf.data.Dataset) -> Probe:
    iterator = tf.data.make_initializable_iterator(batches.take(1))
    return Probe(iterator.initializer, tf.nest.flatten(iterator.get_next()))

"""`input_fn` becomes one `tf.data.Dataset`, and that one iterator.

User code builds per-sample work as plain ops behind `iterator.get_next()`. Here those ops are cut out and put into a
parallel `Dataset.map`; samples are batched, and the place in the data is a number that a checkpoint can hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.datasets.sample_source import Resumable, SampleSource, source_of
from moxing.tensorflow.executor.callbacks import call_with_mode
from moxing.tensorflow.executor.checkpoint import START, Position
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.specs import ModeKeys
from moxing.tensorflow.executor.structures import InputStructure, Leaf
from moxing.tf1.datasets import is_endless
from moxing.tf1.iterators import RecordedIterator, is_iterator, recorded_iterators
from moxing.tf1.surgery import CannotRebuild, Part

_ENDLESS = 2**62


@dataclass
class Inputs:
    """The input of a graph: tensors for `model_fn`, and what is known of the data behind them.

    Attributes:
      structure: the arrangement of `input_fn`'s tensors.
      tensors: one batch, leaf by leaf.
      initializers: to be run before the first step.
      elements_per_step: elements of the user's data that one step takes; 0 where that cannot be known.
      probe: one batch from an iterator of its own, for a look at the data outside the steps.
      begun_at: elements that earlier runs had used.
      sources: the data sets of ours among it, each with the sample it begins with and its elements per element.
    """

    structure: InputStructure
    tensors: list[Leaf]
    initializers: list[tf.Operation] = field(default_factory=list)
    elements_per_step: int = 0
    probe: Probe | None = None
    begun_at: int = 0
    sources: list[tuple[Resumable, int, int]] = field(default_factory=list)

    def place_after(self, steps: int) -> tuple[int, list[int]]:
        """The place in the data after `steps` steps: elements used, and for each data set of ours the next sample."""
        used = steps * self.elements_per_step
        samples = [source.position_after(start, used * group) for source, start, group in self.sources]
        return self.begun_at + used, samples

    def for_model(self) -> Any:
        """The batch, arranged for `model_fn`."""
        return self.structure.arrange(self.tensors)

    def arrived(self) -> list[tf.Operation]:
        """Operations that succeed only when there is a batch."""
        return [tensor.op for tensor in tf.nest.flatten(self.tensors, expand_composites=True)]

    def batch_length(self) -> tf.Tensor:
        """The number of samples in the batch: the leading dimension of the first input that has one."""
        for tensor in self.tensors:
            if isinstance(tensor, tf.SparseTensor):
                return tensor.dense_shape[0]
            if tensor.shape.rank:
                return tf.shape(tensor, out_type=tf.int64)[0]
        return tf.constant(1, tf.int64)


@dataclass
class Probe:
    """An iterator beside the training's own."""

    initializer: tf.Operation
    tensors: list[Leaf]


def build_inputs(config: RunConfig, mode: ModeKeys, position: Position = START, with_probe: bool = False) -> Inputs:
    """Calls `input_fn` and builds the input in the current graph.

    Args:
      config: the run.
      mode: the mode `input_fn` is called with.
      position: where in the data to begin.
      with_probe: also make an iterator for `Inputs.probe`.
    """
    with tf.name_scope("input"), tf.device("/cpu:0"):
        with recorded_iterators() as iterators:
            returned = call_with_mode("input_fn", config.input_fn, mode)
            if is_iterator(returned):
                returned = returned.get_next()
        if isinstance(returned, tf.data.Dataset | tf.compat.v2.data.Dataset):
            with recorded_iterators() as iterators:
                returned = tf.data.make_one_shot_iterator(returned).get_next()
        structure = InputStructure(returned)
        try:
            streams = [_Stream(iterator) for iterator in iterators if iterator.elements]
            _check_batches(streams, config)
            starts = _starts(streams, position)
            dataset = _lift(structure.leaves, streams, starts, position.elements)
        except CannotRebuild as reason:
            tf.logging.debug("The input stays as input_fn built it: %s.", reason)
            return _graph_inputs(config, structure, iterators)
        if config.batches:
            dataset = _batched(dataset, structure.leaves, config, endless=all(stream.endless for stream in streams))
        dataset = dataset.prefetch(tf.data.experimental.AUTOTUNE)
        iterator = tf.data.make_initializable_iterator(dataset)
        inputs = Inputs(
            structure,
            tensors=tf.nest.flatten(iterator.get_next()),
            initializers=[iterator.initializer],
            elements_per_step=config.batch_size if config.batches and config.batch_size else 1,
            begun_at=position.elements,
            sources=[
                (stream.source, start, stream.group)
                for stream, start in zip(streams, starts, strict=True)
                if stream.source is not None
            ],
        )
        if with_probe:
            probe = tf.data.make_initializable_iterator(dataset.take(1))
            inputs.probe = Probe(probe.initializer, tf.nest.flatten(probe.get_next()))
        return inputs


class _Stream:
    """One iterator that `input_fn` took elements from."""

    def __init__(self, iterator: RecordedIterator) -> None:
        self.iterator = iterator
        self.source = source_of(iterator.dataset)
        self.group = len(iterator.elements)
        self.endless = is_endless(iterator.dataset) if self.source is None else self.source.endless

    def dataset(self, start: int) -> tf.data.Dataset:
        """The data from `start` on, a sample of our own data sets, else an element."""
        if self.source is not None:
            dataset = self.source.build(start) if start else self.iterator.dataset
        else:
            # Before the user's per-sample work: what is skipped is not decoded.
            dataset = self.iterator.dataset.skip(start) if start else self.iterator.dataset
        return _grouped(dataset, self.group)


def _check_batches(streams: Sequence[_Stream], config: RunConfig) -> None:
    """Raises where both the data set and `mox.run` would batch."""
    for stream in streams:
        if config.batches and isinstance(stream.source, SampleSource) and stream.source.samples_per_element > 1:
            raise ValueError(
                f"mox.run(batch_size={config.batch_size}): the data set of input_fn has a batch_size already, "
                f"{stream.source.samples_per_element}. Leave it out in one of the two, or pass auto_batch=False."
            )


def _starts(streams: Sequence[_Stream], position: Position) -> list[int]:
    """Where each stream begins."""
    samples = iter(position.samples)
    starts = []
    for stream in streams:
        elements = position.elements * stream.group
        if stream.source is None:
            starts.append(elements)
        else:
            starts.append(next(samples, stream.source.position_after(0, elements)))
    return starts


def _lift(leaves: Sequence[Leaf], streams: Sequence[_Stream], starts: Sequence[int], skip: int) -> tf.data.Dataset:
    """The data set of `leaves`: the recorded data sets, mapped by what the user built behind their iterators."""
    used = [stream.iterator for stream in streams]
    for iterator in used:
        if iterator.real is not None:
            raise CannotRebuild("a feedable iterator")
    if used:
        parts = tuple(stream.dataset(start) for stream, start in zip(streams, starts, strict=True))
        source = parts[0] if len(parts) == 1 else tf.data.Dataset.zip(parts)
        elements = _components([iterator.elements for iterator in used])
    else:
        source, elements = tf.data.Dataset.range(_ENDLESS).skip(skip), []
    targets = _components(leaves)
    part = Part(targets, inputs=elements, forbidden=_keeps_out_of_map)
    if _is_identity(targets, elements, used):
        return source
    specs = [_spec(leaf) for leaf in leaves]

    def per_sample(*element: Any) -> tuple[Leaf, ...]:
        arrived = _components(element) if used else []
        built = part.build({old.name: new for old, new in zip(elements, arrived, strict=True)}, name="sample")
        return tuple(_leaves_like(leaves, built, specs))

    threads = FLAGS.get("num_prefetch_threads") or tf.data.experimental.AUTOTUNE
    # Samples that are worked on at once would swap the numbers of one seeded random sequence.
    return source.map(per_sample, num_parallel_calls=None if part.draws_seeded_numbers() else threads)


def _grouped(dataset: tf.data.Dataset, count: int) -> tf.data.Dataset:
    """The elements in groups of `count`: so many times `get_next` was called."""
    if count == 1:
        return dataset

    def consecutive(*windows: Any) -> Any:
        structure = windows[0] if len(windows) == 1 else windows
        return tuple(
            tf.nest.map_structure(
                lambda window, place=place: tf.data.experimental.get_single_element(window.skip(place).take(1)),
                structure,
            )
            for place in range(count)
        )

    return dataset.window(count, drop_remainder=True).map(consecutive)


def _keeps_out_of_map(op: tf.Operation) -> str | None:
    if op.type.startswith(("IteratorGetNext", "QueueDequeue", "ReaderRead", "Placeholder")):
        return "it is fed from outside the data set"
    if op.type.startswith("Assign") or op.type in ("Assign", "ScatterUpdate"):
        return "it writes a variable"
    return None


def _components(structure: Any) -> list[tf.Tensor]:
    return tf.nest.flatten(structure, expand_composites=True)


def _is_identity(targets: Sequence[tf.Tensor], elements: Sequence[tf.Tensor], used: Sequence[RecordedIterator]) -> bool:
    """True when `input_fn` returned the elements of its one data set, in their order and with their shapes."""
    if len(used) != 1 or len(used[0].elements) != 1 or len(targets) != len(elements):
        return False
    specs = _components(used[0].dataset.element_spec)
    if len(specs) != len(elements):
        return False
    return all(
        target is element and _same_shape(target.shape, spec.shape)
        for target, element, spec in zip(targets, elements, specs, strict=True)
    )


def _same_shape(left: tf.TensorShape, right: tf.TensorShape) -> bool:
    """Equal as far as it is known, unknown dimensions included."""
    return left.rank == right.rank and (left.rank is None or left.as_list() == right.as_list())


def _spec(leaf: Leaf) -> Any:
    return leaf.shape if isinstance(leaf, tf.Tensor) else leaf


def _leaves_like(leaves: Sequence[Leaf], built: Sequence[tf.Tensor], specs: Sequence[Any]) -> list[Leaf]:
    arranged = tf.nest.pack_sequence_as(list(leaves), list(built), expand_composites=True)
    for leaf, shape in zip(arranged, specs, strict=True):
        if isinstance(leaf, tf.Tensor):
            leaf.set_shape(shape)  # what the user said with set_shape is not in the graph's ops
    return arranged


def _batched(dataset: tf.data.Dataset, leaves: Sequence[Leaf], config: RunConfig, endless: bool) -> tf.data.Dataset:
    """Samples put together to batches; samples of unequal size are padded with zeros to the longest.

    The last, short batch is kept. Where there can be none, the batch dimension is known to `model_fn`.
    """
    dense = [leaf for leaf in leaves if isinstance(leaf, tf.Tensor)]
    if all(leaf.shape.is_fully_defined() for leaf in dense):
        return dataset.batch(config.batch_size, drop_remainder=endless)
    if len(dense) != len(leaves):
        raise ValueError(
            "input_fn returned sparse tensors beside dense ones of unknown size, which cannot be padded together: "
            "give the dense ones a size with set_shape, or batch in input_fn and pass auto_batch=False."
        )
    if any(leaf.shape.rank is None for leaf in dense):
        dataset = _with_ranks(dataset)
    shapes = tf.data.get_output_shapes(dataset)
    return dataset.padded_batch(config.batch_size, shapes, drop_remainder=endless)


def _with_ranks(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Finds out ranks that the graph does not tell (a `tf.py_func` says nothing of its result) from one sample."""
    probe = tf.data.make_initializable_iterator(dataset.take(1))
    sample = probe.get_next()
    with tf.Session() as session:
        session.run([tf.tables_initializer(), tf.global_variables_initializer()])
        session.run(probe.initializer)
        values = session.run(tf.nest.flatten(sample))

    def with_rank(*element: Any) -> Any:
        tensors = tf.nest.flatten(element)
        for tensor, value in zip(tensors, values, strict=True):
            if tensor.shape.rank is None:
                tensor.set_shape([None] * getattr(value, "ndim", 0))
        return tuple(tensors)

    return dataset.map(with_rank)


def _graph_inputs(config: RunConfig, structure: InputStructure, iterators: Sequence[RecordedIterator]) -> Inputs:
    """Inputs that stay plain graph ops: queue runners, feedable iterators, fed placeholders."""
    for iterator in iterators:
        if iterator.real is None and iterator.elements:
            raise ValueError(
                "input_fn mixes a data set iterator with queues, feedable iterators or variable writes. Use one of "
                "them: either tf.data throughout, or queue runners throughout."
            )
    if not config.batches:
        return Inputs(structure, list(structure.leaves))
    try:
        batch = tf.train.batch(
            structure.leaves,
            batch_size=config.batch_size,
            capacity=4 * (config.batch_size or 1),
            dynamic_pad=True,
            allow_smaller_final_batch=True,
        )
    except ValueError as error:
        raise ValueError(
            f"The samples of input_fn cannot be batched ({error}). Give each a known rank with set_shape, or batch in "
            "input_fn and pass auto_batch=False."
        ) from error
    return Inputs(structure, batch if isinstance(batch, list) else [batch])

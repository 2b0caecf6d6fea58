"""`input_fn` becomes one `tf.data.Dataset`, and that one iterator.

User code builds per-sample work as plain ops behind `iterator.get_next()`. Here those ops are cut out and put into a
parallel `Dataset.map`; samples are batched, and the place in the data is a number that a checkpoint can hold.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.datasets.sample_source import Resumable, SampleSource, source_of
from moxing.tensorflow.executor import ops_adapter
from moxing.tensorflow.executor.callbacks import call_with_mode
from moxing.tensorflow.executor.checkpoint import START, Position
from moxing.tensorflow.executor.config import RunConfig
from moxing.tensorflow.executor.specs import ModeKeys
from moxing.tensorflow.executor.structures import InputStructure, Leaf
from moxing.tf1.datasets import is_endless, is_sharded
from moxing.tf1.iterators import RecordedIterator, is_iterator, recorded_iterators
from moxing.tf1.surgery import CannotRebuild, Part

_ENDLESS = 2**62
#: Batches of an evaluation that are made ready while one is computed with.
_BATCHES_AHEAD = 2


@dataclass(frozen=True)
class Share:
    """Which part of the data this process takes, and how.

    Attributes:
      towers: how many batches a step takes.
      workers: how many processes share the data.
      index: which of them this is.
      in_step: all do the same number of steps: one whose data has ended goes on with stand-ins.
    """

    towers: int = 1
    workers: int = 1
    index: int = 0
    in_step: bool = False


EVERYTHING = Share()


@dataclass
class Inputs:
    """The input of a graph: tensors for `model_fn`, and what is known of the data behind them.

    Attributes:
      structure: the arrangement of `input_fn`'s tensors.
      towers: for every tower one batch, leaf by leaf.
      present: for every tower 1, or 0 when the data has ended and its batch is a stand-in that must not count; empty
        where that cannot happen.
      initializers: to be run before the first step.
      elements_per_step: elements of the user's data that one step of this process takes; 0 where that is not known.
      workers: how many processes take as many.
      probe: one batch from an iterator of its own, for a look at the data outside the steps.
      begun_at: elements that earlier runs had used.
      endless: true when the data never ends.
      sources: the data sets of ours among it, each with the sample it begins with and its elements per element.
    """

    structure: InputStructure
    towers: list[list[Leaf]]
    present: list[tf.Tensor] = field(default_factory=list)
    initializers: list[tf.Operation] = field(default_factory=list)
    elements_per_step: int = 0
    workers: int = 1
    probe: Probe | None = None
    begun_at: int = 0
    endless: bool = False
    sources: list[tuple[Resumable, int, int]] = field(default_factory=list)

    def place_after(self, steps: int) -> tuple[int, list[int]]:
        """The place in the data after `steps` steps: elements used, and for each data set of ours the next sample."""
        used = steps * self.elements_per_step
        samples = [source.position_after(start, used * group) for source, start, group in self.sources]
        return self.begun_at + used * self.workers, [sample * self.workers for sample in samples]

    def for_model(self, tower: int = 0) -> Any:
        """The batch of a tower, arranged for `model_fn`."""
        return self.structure.arrange(self.towers[tower])

    def arrived(self) -> list[tf.Operation]:
        """Operations that succeed only when there is a batch for every tower."""
        tensors = tf.nest.flatten(self.towers, expand_composites=True)
        # They come from a few operations with many outputs.
        return list({tensor.op: None for tensor in tensors})

    def batch_length(self, tower: int = 0) -> tf.Tensor:
        """The number of samples in a tower's batch that count."""
        length = _length(self.towers[tower])
        return length * self.present[tower] if self.present else length


def _length(batch: Sequence[Leaf]) -> tf.Tensor:
    """The leading dimension of the first input that has one."""
    for tensor in batch:
        if isinstance(tensor, tf.SparseTensor):
            return tensor.dense_shape[0]
        if tensor.shape.rank:
            known = tensor.shape.as_list()[0]
            # A constant says that it is always the same, which saves those who ask for it their work.
            return tf.shape(tensor, out_type=tf.int64)[0] if known is None else tf.constant(known, tf.int64)
    return tf.constant(1, tf.int64)


@dataclass
class Probe:
    """An iterator beside the training's own."""

    initializer: tf.Operation
    tensors: list[Leaf]


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
      mode: the mode `input_fn` is called with.
      position: where in the data to begin.
      with_probe: also make an iterator for `Inputs.probe`.
      share: which part of the data to take.
      limit: how many samples all workers take together at most, -1 for all; it counts when the initializers are run.
    """
    with tf.name_scope("input"), tf.device("/cpu:0"):
        with recorded_iterators() as iterators, ops_adapter.noticed() as asked:
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
            whole = streams
            shards = share.workers > 1 and not asked and not any(stream.is_sharded_already for stream in streams)
            # Where a limit cuts ready batches depends on how long all those before are.
            late = shards and limit is not None and not config.batches
            if shards and not late:
                streams = [stream.shard(share.workers, share.index) for stream in whole]
                starts = [stream.start(start) for stream, start in zip(streams, starts, strict=True)]
            if limit is not None and not late:
                limit = tf.where(limit < 0, limit, part_of(limit, share))
            dataset = _batches(config, structure, streams, starts, position.elements, limit)
            if late:
                dataset = dataset.shard(share.workers, share.index)
        except CannotRebuild as reason:
            tf.logging.debug("The input stays as input_fn built it: %s.", reason)
            return _graph_inputs(config, structure, iterators, share.towers)
        towers, waits = share.towers, share.workers > 1 and share.in_step
        filled = (towers > 1 or waits) and not _endless(streams)
        # A step takes a whole number of batches, and all workers do the same number of steps.
        if filled:
            stand_in = _batches(config, structure, whole, [0] * len(whole), 0)
            source = with_stand_ins(dataset, stand_in, None if waits else towers - 1)
        else:
            source = dataset
        prefetched = source.prefetch(tf.data.experimental.AUTOTUNE) if limit is None else _begun_often(source)
        iterator = tf.data.make_initializable_iterator(prefetched)
        elements = _consecutive(iterator, towers)
        inputs = Inputs(
            structure,
            towers=[element[:-1] if filled else element for element in elements],
            present=[element[-1] for element in elements] if filled else [],
            initializers=[iterator.initializer],
            elements_per_step=towers * (config.batch_size if config.batches and config.batch_size else 1),
            workers=streams[0].workers if streams else 1,
            begun_at=position.elements,
            endless=_endless(streams),
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


def _begun_often(source: tf.data.Dataset) -> tf.data.Dataset:
    """The data set for an iterator that begins anew again and again: that waits for the last one's tuning to end,
    0.3 s or a second."""
    options = tf.data.Options()
    options.autotune.enabled = False
    return source.prefetch(_BATCHES_AHEAD).with_options(options)


def part_of(count: Any, share: Share) -> Any:
    """How many of the first `count` elements a worker takes, a number or a tensor.

    Example:
      >>> [part_of(8, Share(workers=3, index=index)) for index in range(3)]
      [3, 3, 2]
    """
    return (count - share.index + share.workers - 1) // share.workers


def with_stand_ins(dataset: tf.data.Dataset, stand_in: tf.data.Dataset, count: int | None) -> tf.data.Dataset:
    """The elements of `dataset`, each with a 1, and behind them `count` times the first of `stand_in` with a 0.

    So the last, short group of elements can be taken as a whole one. None: without end.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     numbers = tf.data.Dataset.range(3)
      ...     element = tf.data.make_one_shot_iterator(with_stand_ins(numbers, numbers, 2)).get_next()
      ...     print([tuple(int(part) for part in session.run(element)) for _ in range(5)])
      [(0, 1), (1, 1), (2, 1), (0, 0), (0, 0)]
    """

    def marked(dataset: tf.data.Dataset, mark: int) -> tf.data.Dataset:
        return dataset.map(lambda *element: (*element, np.int64(mark)))

    return marked(dataset, 1).concatenate(marked(stand_in.take(1), 0).repeat(count))


def _consecutive(iterator: Any, count: int) -> list[list[Leaf]]:
    """So many elements of an iterator, one after the other."""
    elements: list[list[Leaf]] = []
    for _ in range(count):
        before = tf.nest.flatten(elements[-1:], expand_composites=True)[:1]
        with tf.control_dependencies(before):
            elements.append(tf.nest.flatten(iterator.get_next()))
    return elements


class _Stream:
    """One iterator that `input_fn` took elements from."""

    def __init__(self, iterator: RecordedIterator) -> None:
        self.iterator = iterator
        self.source = source_of(iterator.dataset)
        self.group = len(iterator.elements)
        self.endless = is_endless(iterator.dataset) if self.source is None else self.source.endless
        self.workers, self.index = 1, 0

    def shard(self, workers: int, index: int) -> _Stream:
        """The part of the stream that one of the workers takes."""
        part = copy.copy(self)
        part.workers, part.index = workers, index
        if self.group == 1 and isinstance(self.source, SampleSource):
            part.source = self.source.shard(workers, index)
        return part

    @property
    def _by_sample(self) -> bool:
        """Our own data sets read nothing of what belongs to other workers."""
        return self.group == 1 and isinstance(self.source, SampleSource)

    @property
    def is_sharded_already(self) -> bool:
        """True when the user took a part of the data himself."""
        return is_sharded(self.iterator.dataset)

    def start(self, position: int) -> int:
        """Where this worker begins when all together are at `position`."""
        return max(0, -((self.index - position) // self.workers)) if self._by_sample else position

    def dataset(self, start: int) -> tf.data.Dataset:
        """The data from `start` on, a sample of our own data sets, else an element."""
        if self.source is not None:
            sharded = self._by_sample and self.workers > 1
            dataset = self.source.build(start) if start or sharded else self.iterator.dataset
            if sharded:
                return dataset
        else:
            # Before the user's per-sample work: what is skipped is not decoded.
            dataset = self.iterator.dataset.skip(start) if start else self.iterator.dataset
        dataset = _grouped(dataset, self.group)
        return dataset.shard(self.workers, self.index) if self.workers > 1 else dataset


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


def _endless(streams: Sequence[_Stream]) -> bool:
    return all(stream.endless for stream in streams)


def _batches(
    config: RunConfig,
    structure: InputStructure,
    streams: Sequence[_Stream],
    starts: Sequence[int],
    skip: int,
    limit: tf.Tensor | None = None,
) -> tf.data.Dataset:
    """The data set whose elements `model_fn` is given, leaf by leaf."""
    dataset = _lift(structure.leaves, streams, starts, skip)
    if not config.batches:
        return dataset if limit is None else cut_to(dataset, limit)
    endless = _endless(streams)
    if limit is not None:
        dataset, endless = dataset.take(limit), False
    return _batched(dataset, structure.leaves, config, endless)


def cut_to(dataset: tf.data.Dataset, limit: tf.Tensor) -> tf.data.Dataset:
    """The first `limit` samples of a data set of batches, -1 for all: the last batch is cut.

    Args:
      dataset: its elements are batches; of their tensors those as long as the first have one sample a row.
      limit: how many samples.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     batches = tf.data.Dataset.range(10).batch(4).map(lambda number: (number, number + 1, [1, 2, 3]))
      ...     batch = tf.data.make_one_shot_iterator(cut_to(batches, tf.constant(6, tf.int64))).get_next()
      ...     for _ in range(2):
      ...         print([part.tolist() for part in session.run(batch)])
      [[0, 1, 2, 3], [1, 2, 3, 4], [1, 2, 3]]
      [[4, 5], [5, 6], [1, 2, 3]]
    """
    everything = np.int64(_ENDLESS)

    def cut(left: tf.Tensor, element: Any) -> Any:
        length = _length(tf.nest.flatten(element))
        taken = tf.minimum(length, left)
        rows = tf.nest.map_structure(lambda leaf: _rows(leaf, length, taken), element)
        return left - taken, (rows, taken)

    first = tf.where(limit < 0, everything, limit)
    cutting = dataset.scan(first, cut).take_while(lambda _, taken: taken > 0)
    return cutting.map(lambda element, _: element)


def _rows(leaf: Leaf, length: tf.Tensor, count: tf.Tensor) -> Leaf:
    """The first `count` rows of what has `length` of them; anything else stays."""
    if isinstance(leaf, tf.SparseTensor):
        rows = tf.where(tf.equal(leaf.dense_shape[0], length), count, leaf.dense_shape[0])
        shape = tf.concat([rows[None], leaf.dense_shape[1:]], 0)
        return tf.sparse.slice(leaf, tf.zeros_like(shape), shape)
    if not leaf.shape.rank:
        return leaf
    own = tf.shape(leaf, out_type=tf.int64)[0]
    return leaf[: tf.where(tf.equal(own, length), count, own)]


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


def _graph_inputs(
    config: RunConfig, structure: InputStructure, iterators: Sequence[RecordedIterator], towers: int
) -> Inputs:
    """Inputs that stay plain graph ops: queue runners, feedable iterators, fed placeholders."""
    for iterator in iterators:
        if iterator.real is None and iterator.elements:
            raise ValueError(
                "input_fn mixes a data set iterator with queues, feedable iterators or variable writes. Use one of "
                "them: either tf.data throughout, or queue runners throughout."
            )
    if not config.batches:
        return Inputs(structure, _dealt(list(structure.leaves), towers))
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
    return Inputs(structure, _dealt(batch if isinstance(batch, list) else [batch], towers))


def _dealt(batch: list[Leaf], towers: int) -> list[list[Leaf]]:
    """Batches for the towers, by way of a queue: every tower takes another one."""
    if towers == 1:
        return [batch]
    if not all(isinstance(leaf, tf.Tensor) for leaf in batch):
        raise NotImplementedError(
            "input_fn returned sparse tensors from queues, which cannot be dealt out to several towers: use tf.data."
        )
    fed = [leaf for leaf in batch if leaf.op.type.startswith("Placeholder")]
    if fed:
        raise ValueError(
            f"input_fn returned the placeholder {fed[0].name}, and {towers} towers each need a batch of their own: "
            "make the placeholder in model_fn, and a FeedSessionRunHook there feeds every tower's."
        )
    queue = tf.FIFOQueue(2 * towers, [leaf.dtype for leaf in batch], name="towers")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(batch)]))
    dealt = []
    for _ in range(towers):
        taken = queue.dequeue()
        taken = list(taken) if isinstance(taken, list | tuple) else [taken]
        for leaf, original in zip(taken, batch, strict=True):
            leaf.set_shape(original.shape)
        dealt.append(taken)
    return dealt

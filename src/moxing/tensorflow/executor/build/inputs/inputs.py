"""The two ends of the input: what `input_fn` returned, and what `build_inputs` makes of it for `model_fn`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor import ops_adapter
from moxing.tensorflow.executor.build.inputs.stream import Stream
from moxing.tensorflow.executor.checkpoints.position import Position
from moxing.tensorflow.executor.specs import InputSpec, ModeKeys, call_with_mode
from moxing.tf1.graph.iterators import RecordedIterator, recorded_iterators

#: A tensor of an input, dense or sparse.
Leaf: TypeAlias = tf.Tensor | tf.SparseTensor


@dataclass(frozen=True)
class RecordedInput:
    """What a call of `input_fn` returned and created.

    Attributes:
      structure: the tensors that it returned: one tensor, a list, a dict, an `InputSpec`, nested or not.
      iterators: the iterators that it created.
      asked_for_rank: it called `ops_adapter.rank()` or `size()`: it shards the data itself.
    """

    structure: InputStructure
    iterators: Sequence[RecordedIterator]
    asked_for_rank: bool


def record_input_fn(input_fn: Callable[..., Any], mode: ModeKeys, workers: int = 1) -> RecordedInput:
    """Calls `input_fn` in the current graph. A returned iterator or dataset becomes its next element.

    Args:
      input_fn: the user's function.
      mode: the mode that it is called with.
      workers: number of processes that share the data.
    """
    # One worker has nothing to shard.
    calls = ops_adapter.recorded_calls() if workers > 1 else nullcontext(())
    with recorded_iterators() as iterators, calls as rank_calls:
        returned = call_with_mode("input_fn", input_fn, mode)
        if isinstance(returned, RecordedIterator | tf.data.Iterator):
            returned = returned.get_next()
    if isinstance(returned, tf.data.Dataset | tf.compat.v2.data.Dataset):
        with recorded_iterators() as iterators:
            returned = tf.data.make_one_shot_iterator(returned).get_next()
    return RecordedInput(InputStructure(returned), iterators, bool(rank_calls))


class InputStructure:
    """Remembers how `input_fn` arranged its tensors, to arrange other tensors the same way for `model_fn`.

    Args:
      returned: what `input_fn` returned.

    Attributes:
      leaves: its tensors, in the order of `tf.nest.flatten`.

    Example:
      >>> with tf.Graph().as_default():
      ...     structure = InputStructure(tf.constant(1, name='a'))
      ...     [tensor.name for tensor in structure.arrange(structure.leaves)]
      ['a:0']
    """

    def __init__(self, returned: Any) -> None:
        self._input_spec = returned if isinstance(returned, InputSpec) else None
        self._pattern = self._top_level(returned)
        self.leaves: list[Leaf] = [_require_tensor(leaf, path) for path, leaf in _flatten(self._pattern)]
        if not self.leaves:
            raise ValueError(f"input_fn returned {returned!r}: expected at least one tensor.")

    @staticmethod
    def _top_level(returned: Any) -> Any:
        if isinstance(returned, InputSpec):
            return returned.groups
        if isinstance(returned, dict):
            return returned
        if isinstance(returned, list | tuple):
            return list(returned)
        return [returned]  # model_fn gets a single tensor as a list of one (manual, pitfall 4-0-1)

    def arrange(self, leaves: Sequence[Leaf]) -> Any:
        """Arranges `leaves` for `model_fn`."""
        packed = tf.nest.pack_sequence_as(self._pattern, list(leaves))
        if self._input_spec is None:
            return packed
        spec = InputSpec(self._input_spec.split_to_device)
        for group in packed:
            spec.new_input(group)
        return spec


def _flatten(pattern: Any, path: str = "") -> list[tuple[str, Any]]:
    """The leaves with their paths, `[0]` or `['image']`, in the order of `tf.nest.flatten`."""
    if isinstance(pattern, dict):
        items = [(f"{path}[{key!r}]", pattern[key]) for key in sorted(pattern)]
    elif isinstance(pattern, list | tuple):
        items = [(f"{path}[{index}]", value) for index, value in enumerate(pattern)]
    else:
        return [(path, pattern)]
    return [leaf for child, value in items for leaf in _flatten(value, child)]


def _require_tensor(leaf: Any, path: str) -> Leaf:
    if isinstance(leaf, Leaf):
        return leaf
    if isinstance(leaf, tf.compat.v2.Variable):
        return tf.convert_to_tensor(leaf)
    if isinstance(leaf, np.ndarray | np.generic):
        kind = f"a numpy array of shape {leaf.shape} and type {leaf.dtype}"
    else:
        kind = f"a {type(leaf).__module__}.{type(leaf).__name__} ({leaf!r:.60})"
    raise TypeError(
        f"input_fn returned {kind} at position {path}: expected a tf.Tensor. "
        "Feed arrays with tf.data.Dataset.from_tensor_slices(...) or turn a constant into tf.constant(...)."
    )


@dataclass(frozen=True)
class Probe:
    """One batch from the start of the data, from an iterator of its own: reading it does not move the training's.

    Attributes:
      initializer: run it before `tensors`.
      tensors: the batch, leaf by leaf.
    """

    initializer: tf.Operation
    tensors: list[Leaf]


@dataclass(frozen=True)
class Inputs:
    """The input of a graph: tensors for `model_fn`, and what is known about the data.

    Attributes:
      structure: how `input_fn` arranged its tensors.
      towers: one batch for each tower, leaf by leaf.
      present: for each tower 1, or 0 when its batch is padding after the end of the data; empty where there is no
        padding.
      initializers: run them before the first step.
      elements_per_step: elements of the user's data that one step of this process reads; 0 if not known.
      workers: number of processes that read as many.
      probe: one batch outside the steps, on request.
      first_element: elements that earlier runs have read.
      endless: true when the data never ends.
      streams: the iterators behind the batches; empty where the input is made of queues.
    """

    structure: InputStructure
    towers: list[list[Leaf]]
    present: list[tf.Tensor] = field(default_factory=list)
    initializers: list[tf.Operation] = field(default_factory=list)
    elements_per_step: int = 0
    workers: int = 1
    probe: Probe | None = None
    first_element: int = 0
    endless: bool = False
    streams: Sequence[Stream] = ()

    def position_after(self, steps: int) -> Position:
        """The position in the data after `steps` steps of this run."""
        used = steps * self.elements_per_step
        samples = [stream.sample_after(used) for stream in self.streams]
        return Position(
            elements=self.first_element + used * self.workers,
            samples=tuple(sample * self.workers for sample in samples if sample is not None),
            sizes=tuple(stream.size for stream in self.streams) if self.workers == 1 else (),
        )

    def changed_sizes(self, before: Sequence[int]) -> tuple[int, int] | None:
        """The first dataset whose number of samples has changed: the number before and now.

        Args:
          before: `Position.sizes` of the checkpoint that the run resumes from.
        """
        now = self.position_after(0).sizes
        pairs = zip(before, now, strict=False)
        return next(((old, new) for old, new in pairs if old != new and old >= 0 and new >= 0), None)

    def elements_in(self, session: tf.Session) -> int | None:
        """The number of elements of the data, if TensorFlow knows it."""
        try:
            counts = [tf.data.experimental.cardinality(stream.iterator.dataset) for stream in self.streams]
            found = [int(count) for count in session.run(counts)]
        except (tf.errors.OpError, ValueError, TypeError, RuntimeError):
            return None  # made in another graph
        known = [count // stream.group for count, stream in zip(found, self.streams, strict=True) if count >= 0]
        return min(known) if known else None

    @property
    def starts_over(self) -> bool:
        """True when the run reads the data from its start."""
        first = self.position_after(0)
        return not first.elements and not any(first.samples)

    def arrived(self) -> list[tf.Operation]:
        """Operations that succeed only when there is a batch for every tower."""
        tensors = tf.nest.flatten(self.towers, expand_composites=True)
        # A few operations with many outputs: list each once.
        return list({tensor.op: None for tensor in tensors})

    def batch_length(self, tower: int = 0) -> tf.Tensor:
        """The number of samples in a tower's batch; 0 if it is padding."""
        length = batch_length(self.towers[tower])
        return length * self.present[tower] if self.present else length


def batch_length(batch: Sequence[Leaf]) -> tf.Tensor:
    """The number of samples in a batch: the first dimension of its first tensor that is not a scalar."""
    for tensor in batch:
        if isinstance(tensor, tf.SparseTensor):
            return tensor.dense_shape[0]
        if tensor.shape.rank:
            known = tensor.shape.as_list()[0]
            # A constant tells callers that all batches have the same length.
            return tf.shape(tensor, out_type=tf.int64)[0] if known is None else tf.constant(known, tf.int64)
    return tf.constant(1, tf.int64)

"""Iterators that an `input_fn` makes, turned back into the data sets behind them.

While `recorded_iterators` is active, `make_one_shot_iterator` and `make_initializable_iterator` (methods and functions)
return an iterator whose `get_next` hands out placeholders. What the user builds on those placeholders can then be cut
out and put into a `Dataset.map`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.data.ops import dataset_ops, iterator_ops

from moxing.tf1 import surgery


class RecordedIterator:
    """Stands in for a `tf.data.Iterator`: every `get_next` is a new set of placeholders."""

    def __init__(self, dataset: Any, make_real: Callable[[], Any]) -> None:
        self.dataset = dataset
        self.elements: list[Any] = []
        self.real: Any = None
        self._make_real = make_real

    @property
    def initializer(self) -> tf.Operation:
        """Nothing to do: the run makes and initialises the iterator itself."""
        return tf.no_op(name="recorded_iterator_initializer") if self.real is None else self.real.initializer

    @property
    def output_types(self) -> Any:
        return tf.data.get_output_types(self.dataset)

    @property
    def output_shapes(self) -> Any:
        return tf.data.get_output_shapes(self.dataset)

    @property
    def output_classes(self) -> Any:
        return tf.data.get_output_classes(self.dataset)

    @property
    def element_spec(self) -> Any:
        return self.dataset.element_spec

    def get_next(self, name: str | None = None) -> Any:
        if self.real is not None:
            return self.real.get_next(name)
        element = tf.nest.map_structure(_placeholder, self.dataset.element_spec)
        self.elements.append(element)
        return element

    def string_handle(self, name: str | None = None) -> tf.Tensor:
        """A feedable iterator needs a true one: from here on this is it."""
        if self.real is None:
            self.real = self._make_real()
            tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, self.real.initializer)
        return self.real.string_handle(name)


def _placeholder(spec: Any) -> Any:
    if isinstance(spec, tf.TensorSpec):
        return tf.placeholder(spec.dtype, spec.shape, name="element")
    if isinstance(spec, tf.SparseTensorSpec):
        return tf.sparse_placeholder(spec.dtype, spec.shape, name="element")
    raise surgery.CannotRebuild(f"a data set element of type {type(spec).__name__}")


def _waits_for_feed(dataset: Any) -> bool:
    """True when the data set hangs on a placeholder: only the user's hook knows what to feed its initializer."""
    found = surgery.ancestors([dataset._variant_tensor])
    return any(op.type.startswith("Placeholder") for op in found.values())


def _liftable(dataset: Any) -> bool:
    supported = (tf.TensorSpec, tf.SparseTensorSpec)
    leaves = tf.nest.flatten(dataset.element_spec)
    return all(isinstance(spec, supported) for spec in leaves) and not _waits_for_feed(dataset)


@contextmanager
def recorded_iterators() -> Iterator[list[RecordedIterator]]:
    """Records the iterators made inside; the list grows as they are made.

    Example:
      >>> with tf.Graph().as_default(), recorded_iterators() as iterators:
      ...     value = tf.data.Dataset.range(3).make_one_shot_iterator().get_next()
      >>> value.op.type, len(iterators)
      ('Placeholder', 1)
    """
    recorded: list[RecordedIterator] = []
    graph = tf.get_default_graph()
    one_shot = dataset_ops.DatasetV1._make_one_shot_iterator
    initializable = dataset_ops.DatasetV1._make_initializable_iterator

    def record(dataset: Any, make_real: Callable[[], Any]) -> Any:
        if tf.get_default_graph() is not graph or not _liftable(dataset):
            return make_real()
        iterator = RecordedIterator(dataset, lambda: initializable(dataset))
        recorded.append(iterator)
        return iterator

    def make_one_shot(self: Any) -> Any:
        return record(self, lambda: one_shot(self))

    def make_initializable(self: Any, shared_name: str | None = None) -> Any:
        return record(self, lambda: initializable(self, shared_name))

    dataset_ops.DatasetV1._make_one_shot_iterator = make_one_shot
    dataset_ops.DatasetV1._make_initializable_iterator = make_initializable
    try:
        yield recorded
    finally:
        dataset_ops.DatasetV1._make_one_shot_iterator = one_shot
        dataset_ops.DatasetV1._make_initializable_iterator = initializable


def is_iterator(value: Any) -> bool:
    """True for an iterator object, which an `input_fn` sometimes returns instead of its `get_next()`.

    Example:
      >>> is_iterator(3)
      False
    """
    return isinstance(value, RecordedIterator | iterator_ops.Iterator)

"""Finds the datasets behind the iterators that an `input_fn` makes.

Inside `recorded_iterators`, `make_one_shot_iterator` and `make_initializable_iterator` (methods and functions) return
an iterator whose `get_next` returns placeholders. The operations that the user builds on these placeholders can then be
cut out and moved into a `Dataset.map`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.data.ops import dataset_ops

from moxing.tf1.graph import surgery
from moxing.tf1.graph.dataset_properties import variant_tensor


class RecordedIterator:
    """Replaces a `tf.data.Iterator`: every `get_next` returns new placeholders.

    Attributes:
      dataset: the dataset that it iterates over.
      elements: the placeholders of every `get_next`.
      real: the `tf.data.Iterator`, once something needed one.
    """

    def __init__(self, dataset: Any, make_real: Callable[[], Any]) -> None:
        self.dataset = dataset
        self.elements: list[Any] = []
        self.real: Any = None
        self._make_real = make_real

    @property
    def initializer(self) -> tf.Operation:
        """Does nothing: the run makes and initializes the iterator itself."""
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
        """Returns a string handle. A feedable iterator needs a real iterator, so from now on this is one."""
        if self.real is None:
            self.real = self._make_real()
            tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, self.real.initializer)
        return self.real.string_handle(name)


def _placeholder(spec: Any) -> Any:
    if isinstance(spec, tf.TensorSpec):
        return tf.placeholder(spec.dtype, spec.shape, name="element")
    if isinstance(spec, tf.SparseTensorSpec):
        return tf.sparse_placeholder(spec.dtype, spec.shape, name="element")
    raise surgery.CannotRebuild(f"a dataset element of type {type(spec).__name__}")


def _can_be_recorded(dataset: Any) -> bool:
    leaves = tf.nest.flatten(dataset.element_spec)
    if not all(isinstance(spec, tf.TensorSpec | tf.SparseTensorSpec) for spec in leaves):
        return False
    # The initializer of a dataset with placeholders needs a feed, which only a hook of the user knows.
    found = surgery.ancestors([variant_tensor(dataset)])
    return not any(op.type.startswith("Placeholder") for op in found.values())


@contextmanager
def recorded_iterators() -> Iterator[list[RecordedIterator]]:
    """Records the iterators made inside the block.

    Yields:
      The iterators so far.

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
        if tf.get_default_graph() is not graph or not _can_be_recorded(dataset):
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

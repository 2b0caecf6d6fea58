"""Lifting: the ops that `input_fn` built behind its iterators become a parallel `Dataset.map`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS
from moxing.tensorflow.executor.build.inputs.inputs import Leaf
from moxing.tf1.graph.iterators import RecordedIterator
from moxing.tf1.graph.surgery import Subgraph

#: Elements of a dataset that never ends.
ENDLESS = 2**62

#: Why an op cannot run inside `Dataset.map`, by the beginning of its type.
_OUTSIDE = {
    **dict.fromkeys(
        ("IteratorGetNext", "QueueDequeue", "ReaderRead", "Placeholder"), "it gets its data from outside the dataset"
    ),
    **dict.fromkeys(("Assign", "ScatterUpdate"), "it writes a variable"),
}


def lift(
    leaves: Sequence[Leaf],
    iterators: Sequence[RecordedIterator],
    datasets: Sequence[tf.data.Dataset],
    first_element: int,
) -> tf.data.Dataset:
    """The dataset of `leaves`.

    Args:
      leaves: the tensors that `input_fn` returned.
      iterators: the iterators that it took elements from.
      datasets: the data of each iterator.
      first_element: where to start if there are no iterators, only ops that make data.

    Raises:
      CannotRebuild: when the ops cannot run inside a dataset.
    """
    if iterators:
        dataset = datasets[0] if len(datasets) == 1 else tf.data.Dataset.zip(tuple(datasets))
        elements = _components([iterator.elements for iterator in iterators])
    else:
        dataset, elements = tf.data.Dataset.range(ENDLESS).skip(first_element), []
    targets = _components(leaves)
    if _is_identity(targets, elements, iterators):
        return dataset
    subgraph = Subgraph(targets, inputs=elements, forbidden=_OUTSIDE)

    def per_sample(*element: Any) -> tuple[Leaf, ...]:
        arrived = _components(element) if iterators else []
        built = subgraph.build({old.name: new for old, new in zip(elements, arrived, strict=True)}, name="sample")
        return tuple(_arranged_like(leaves, built))

    threads = FLAGS.get("num_prefetch_threads") or tf.data.experimental.AUTOTUNE
    # Parallel samples would draw the numbers of one seeded random sequence in another order.
    return dataset.map(per_sample, num_parallel_calls=None if subgraph.draws_seeded_numbers() else threads)


def _components(structure: Any) -> list[tf.Tensor]:
    return tf.nest.flatten(structure, expand_composites=True)


def _is_identity(
    targets: Sequence[tf.Tensor], elements: Sequence[tf.Tensor], iterators: Sequence[RecordedIterator]
) -> bool:
    """True when `input_fn` returned the elements of its one dataset, in their order and with their shapes."""
    if len(iterators) != 1 or len(iterators[0].elements) != 1 or len(targets) != len(elements):
        return False
    specs = _components(iterators[0].dataset.element_spec)
    if len(specs) != len(elements):
        return False
    return all(
        target is element and _same_shape(target.shape, spec.shape)
        for target, element, spec in zip(targets, elements, specs, strict=True)
    )


def _same_shape(left: tf.TensorShape, right: tf.TensorShape) -> bool:
    """True when ranks and dimensions are equal; unknown equals unknown."""
    return left.rank == right.rank and (left.rank is None or left.as_list() == right.as_list())


def _arranged_like(leaves: Sequence[Leaf], components: Sequence[tf.Tensor]) -> list[Leaf]:
    """The tensors `components`, arranged as the tensors and sparse tensors of `leaves`."""
    arranged = tf.nest.pack_sequence_as(list(leaves), list(components), expand_composites=True)
    for leaf, original in zip(arranged, leaves, strict=True):
        if isinstance(leaf, tf.Tensor):
            leaf.set_shape(original.shape)  # rebuilt ops do not know what the user declared with set_shape
    return arranged

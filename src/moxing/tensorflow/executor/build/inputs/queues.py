"""Inputs that cannot be a dataset: queue runners, feedable iterators, placeholders stay plain graph ops."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from moxing.tensorflow.executor.build.inputs.inputs import Inputs, Leaf, RecordedInput
from moxing.tensorflow.executor.config import RunConfig


def queue_inputs(config: RunConfig, recorded: RecordedInput, towers: int) -> Inputs:
    """Batches the tensors of `input_fn` with queues, one batch for each tower."""
    for iterator in recorded.iterators:
        if iterator.real is None and iterator.elements:
            raise ValueError(
                "input_fn mixes a dataset iterator with queues, feedable iterators or variable writes. Use either "
                "tf.data or queue runners for all of the input."
            )
    leaves = recorded.structure.leaves
    if not config.batches:
        return Inputs(recorded.structure, _one_batch_per_tower(list(leaves), towers))
    try:
        batch = tf.train.batch(
            leaves,
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
    return Inputs(recorded.structure, _one_batch_per_tower(batch if isinstance(batch, list) else [batch], towers))


def _one_batch_per_tower(batch: list[Leaf], towers: int) -> list[list[Leaf]]:
    """Puts the batches into a queue, from which every tower takes another one."""
    if towers == 1:
        return [batch]
    if not all(isinstance(leaf, tf.Tensor) for leaf in batch):
        raise NotImplementedError(
            "input_fn returned sparse tensors from queues, which cannot feed several towers. Use tf.data."
        )
    fed = [leaf for leaf in batch if leaf.op.type.startswith("Placeholder")]
    if fed:
        raise ValueError(
            f"input_fn returned the placeholder {fed[0].name}, but each of {towers} towers needs its own batch. "
            "Create the placeholder in model_fn and feed it with a FeedSessionRunHook there."
        )
    queue = tf.FIFOQueue(2 * towers, [leaf.dtype for leaf in batch], name="towers")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(batch)]))
    batches = []
    for _ in range(towers):
        dequeued = queue.dequeue()
        dequeued = list(dequeued) if isinstance(dequeued, list | tuple) else [dequeued]
        for leaf, original in zip(dequeued, batch, strict=True):
            leaf.set_shape(original.shape)
        batches.append(dequeued)
    return batches

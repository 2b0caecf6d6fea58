"""Tensors with beams: tiling them, and following the parents of beams back to the first step."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

v1 = tf.compat.v1


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Repeats every row of tensors [batch, ...], so that a row's copies are next to each other.

    Args:
      t: a tensor, or a structure of tensors.
      multiplier: number of copies, the beam width.
      name: name of the operations.

    Example:
      >>> with tf.Graph().as_default(), v1.Session() as session:
      ...     print(session.run(tile_batch([1, 2], 3)))
      [1 1 1 2 2 2]
    """
    tensors = t if tf.nest.is_nested(t) and not isinstance(t, list) else tf.convert_to_tensor(t)
    with v1.name_scope(name, "tile_batch", [*tf.nest.flatten(tensors), multiplier]):
        return tf.nest.map_structure(lambda one: _repeat(tf.convert_to_tensor(one), multiplier), tensors)


def _repeat(tensor: Any, multiplier: Any) -> Any:
    if not tensor.shape.rank:
        raise ValueError(f"t must be tensors [batch, ...], got the shape {tensor.shape}")
    repeated = tf.repeat(tensor, multiplier, axis=0)
    count, rows = tf.get_static_value(multiplier), tensor.shape[0]
    repeated.set_shape([rows * int(count) if rows is not None and count is not None else None, *tensor.shape[1:]])
    return repeated


def gather_tree(
    step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any, name: str | None = None
) -> Any:
    """Returns the ids of whole beams: at each step that of the beam from which the last one descends.

    Args:
      step_ids: [time, batch, beams], the ids that were chosen in each step.
      parent_ids: [time, batch, beams], the beam of the step before that each continues.
      max_sequence_lengths: [batch]; ids after them are `end_token`.
      end_token: after it, all ids are `end_token`.
      name: name of the operations.
    """
    with v1.name_scope(name, "GatherTree", [step_ids, parent_ids]):
        step_ids, parent_ids = tf.convert_to_tensor(step_ids), tf.convert_to_tensor(parent_ids)
        end = tf.cast(end_token, step_ids.dtype)
        shape = tf.shape(step_ids)
        inside = tf.transpose(tf.sequence_mask(max_sequence_lengths, shape[0]))[:, :, None]
        own = tf.broadcast_to(tf.range(shape[2]), shape[1:])

        def one_step_back(after: Any, step: Any) -> Any:
            ids, parents, valid = step
            beam = after[1]
            found = tf.where(valid, tf.gather(ids, beam, axis=1, batch_dims=1), tf.fill(shape[1:], end))
            parent = tf.where(valid, tf.gather(tf.cast(parents, tf.int32), beam, axis=1, batch_dims=1), beam)
            return found, parent

        ids, _ = tf.scan(
            one_step_back, (step_ids, parent_ids, inside), initializer=(tf.fill(shape[1:], end), own), reverse=True
        )
        ended = tf.cumsum(tf.cast(tf.equal(ids, end), tf.int32), axis=0, exclusive=True) > 0
        ids = tf.where(ended, tf.fill(shape, end), ids)
        ids.set_shape(step_ids.shape)
        return ids


def gather_tree_from_array(t: Any, parent_ids: Any, sequence_length: Any) -> Any:
    """Returns what was stored in each step, for whole beams.

    Args:
      t: [time, batch * beams, ...] or [time, batch, beams, ...].
      parent_ids: [time, batch, beams].
      sequence_length: [batch, beams].

    Returns:
      [time, batch, beams, n]; positions after the end of a sequence hold the values of the beam itself.
    """
    shape = tf.shape(parent_ids)
    time, batch, beams = shape[0], shape[1], shape[2]
    own = tf.broadcast_to(tf.range(beams), shape)
    longest = tf.cast(tf.reduce_max(sequence_length, axis=1), tf.int32)
    sources = gather_tree(own, parent_ids, longest, beams + 1)
    inside = tf.transpose(tf.sequence_mask(sequence_length, time), [2, 0, 1])
    sources = tf.where(inside, sources, own)
    values = tf.reshape(t, [time, batch, beams, -1])
    return tf.gather(values, sources, axis=2, batch_dims=2)

"""Stacks of bidirectional layers over lists of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1


def stack_bidirectional_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Sequence[Any],
    initial_states_fw: Sequence[Any] | None = None,
    initial_states_bw: Sequence[Any] | None = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], tuple[Any, ...], tuple[Any, ...]]:
    """Stacks bidirectional layers: each layer reads the concatenated outputs of the layer below.

    Args:
      cells_fw: the forward cell of each layer, the lowest layer first.
      cells_bw: the backward cell of each layer.
      inputs: a [batch, n] per step.
      initial_states_fw: one state per layer. Default: zeros of type `dtype`.
      initial_states_bw: one state per layer. Default: zeros of type `dtype`.
      dtype: type of the zero states.
      sequence_length: int32 [batch], the length of each sequence.
      scope: name of the variable scope.

    Returns:
      The outputs of the highest layer, the forward states and the backward states (one per layer).
    """
    if not cells_fw or len(cells_fw) != len(cells_bw):
        raise ValueError(
            f"cells_fw and cells_bw must have the same length, at least 1: got {len(cells_fw)} and {len(cells_bw)}"
        )
    states_fw, states_bw = [], []
    layer = list(inputs)
    with v1.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (cell_fw, cell_bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with v1.variable_scope(f"cell_{i}"):
                layer, state_fw, state_bw = v1.nn.static_bidirectional_rnn(
                    cell_fw,
                    cell_bw,
                    layer,
                    initial_state_fw=initial_states_fw[i] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[i] if initial_states_bw else None,
                    sequence_length=sequence_length,
                    dtype=dtype,
                )
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return layer, tuple(states_fw), tuple(states_bw)

"""`tf.contrib.rnn`: the cells and loops of `tf.nn` under their contrib names."""

from __future__ import annotations

from typing import Any

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_NAMES = _lazy.names(
    (
        "tensorflow.compat.v1:nn.rnn_cell",
        "BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell LSTMStateTuple MultiRNNCell RNNCell "
        "ResidualWrapper",
    ),
    ("tensorflow.compat.v1:nn", "static_bidirectional_rnn static_rnn static_state_saving_rnn"),
)

__all__ = [*_NAMES, "stack_bidirectional_dynamic_rnn"]
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)


def stack_bidirectional_dynamic_rnn(
    cells_fw: list[Any],
    cells_bw: list[Any],
    inputs: Any,
    initial_states_fw: list[Any] | None = None,
    initial_states_bw: list[Any] | None = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Bidirectional layers on top of each other: each reads both outputs of the one below, side by side.

    Args:
      cells_fw: The forward cell of each layer, the lowest first.
      cells_bw: The backward cell of each layer; as many.
      inputs: [batch, time, ...], or [time, batch, ...] if `time_major`.
      initial_states_fw: One per layer; zeros of type `dtype` by default.
      initial_states_bw: One per layer; zeros of type `dtype` by default.
      dtype: Of the zero states.
      sequence_length: int32 [batch], for sequences shorter than the batch.
      parallel_iterations: How many time steps may run at once.
      time_major: The order of the first two dimensions.
      scope: Name of the variable scope.

    Returns:
      (outputs of the highest layer, forward states, backward states), the states one per layer.
    """
    import tensorflow as tf

    if not cells_fw or len(cells_fw) != len(cells_bw):
        raise ValueError(
            f"cells_fw and cells_bw must be as many, at least one: got {len(cells_fw)} and {len(cells_bw)}"
        )
    v1 = tf.compat.v1
    states_fw, states_bw = [], []
    layer = inputs
    with v1.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (cell_fw, cell_bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with v1.variable_scope(f"cell_{i}"):
                outputs, (state_fw, state_bw) = v1.nn.bidirectional_dynamic_rnn(
                    cell_fw,
                    cell_bw,
                    layer,
                    initial_state_fw=initial_states_fw[i] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[i] if initial_states_bw else None,
                    sequence_length=sequence_length,
                    parallel_iterations=parallel_iterations,
                    time_major=time_major,
                    dtype=dtype,
                )
            layer = tf.concat(outputs, axis=2)
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return layer, tuple(states_fw), tuple(states_bw)

"""`tf.contrib.rnn`: the cells and loops of `tf.nn` under their contrib names, and its own cells (`_cells`)."""

from __future__ import annotations

from typing import Any

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_CELLS = "moxing.tf1.contrib._cells"
_NAMES = _lazy.names(
    (
        "tensorflow.compat.v1:nn.rnn_cell",
        "BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell LSTMStateTuple MultiRNNCell RNNCell "
        "ResidualWrapper",
    ),
    ("tensorflow.compat.v1:nn", "static_bidirectional_rnn static_rnn static_state_saving_rnn"),
    ("tf_keras.src.layers.rnn.legacy_cells:", "LayerRNNCell"),
    (
        "tensorflow.python.ops.rnn:",
        "best_effort_input_batch_size=_best_effort_input_batch_size transpose_batch_time=_transpose_batch_time",
    ),
    (
        f"{_CELLS}.wrappers:",
        "AttentionCellWrapper EmbeddingWrapper HighwayWrapper InputProjectionWrapper OutputProjectionWrapper",
    ),
    (
        f"{_CELLS}.gated:",
        "CoupledInputForgetGateLSTMCell GLSTMCell IntersectionRNNCell LayerNormBasicLSTMCell NASCell UGRNNCell",
    ),
    (f"{_CELLS}.phased:", "PhasedLSTMCell"),
    (f"{_CELLS}.convolutional:", "Conv1DLSTMCell Conv2DLSTMCell Conv3DLSTMCell ConvLSTMCell"),
    (
        f"{_CELLS}.fused:",
        "FusedRNNCell FusedRNNCellAdaptor GRUBlockCell GRUBlockCellV2 LSTMBlockCell LSTMBlockFusedCell "
        "LSTMBlockWrapper TimeReversedFusedRNN",
    ),
    (
        f"{_CELLS}.refused:",
        "BidirectionalGridLSTMCell CFNCell CompiledWrapper GridLSTMCell IndRNNCell IndyGRUCell IndyLSTMCell "
        "LayerNormLSTMCell MinimalRNNCell SRUCell TimeFreqLSTMCell WeightNormLSTMCell",
    ),
    (f"{_CELLS}.loops:", "stack_bidirectional_rnn"),
    # Private there, but programs of 2017 use them.
    (f"{_CELLS}.linear:", "_Linear=Linear _linear=linear"),
)

__all__ = [*(name for name in _NAMES if not name.startswith("_")), "stack_bidirectional_dynamic_rnn"]
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
    """Stacks bidirectional layers: each layer reads the concatenated outputs of the layer below.

    Args:
      cells_fw: the forward cell of each layer, the lowest layer first.
      cells_bw: the backward cell of each layer.
      inputs: [batch, time, ...], or [time, batch, ...] with `time_major`.
      initial_states_fw: one state per layer. Default: zeros of type `dtype`.
      initial_states_bw: one state per layer. Default: zeros of type `dtype`.
      dtype: type of the zero states.
      sequence_length: int32 [batch], the length of each sequence.
      parallel_iterations: number of time steps that may run in parallel.
      time_major: whether time is the first dimension.
      scope: name of the variable scope.

    Returns:
      The outputs of the highest layer, the forward states and the backward states (one per layer).
    """
    import tensorflow as tf

    if not cells_fw or len(cells_fw) != len(cells_bw):
        raise ValueError(
            f"cells_fw and cells_bw must have the same length, at least 1: got {len(cells_fw)} and {len(cells_bw)}"
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

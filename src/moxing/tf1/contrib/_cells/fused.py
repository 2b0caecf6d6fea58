"""Cells that run a whole sequence in one call, and the block cells with their kernels."""

from __future__ import annotations

import abc
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1
RNNCell: Any = v1.nn.rnn_cell.RNNCell
LSTMStateTuple = v1.nn.rnn_cell.LSTMStateTuple


class FusedRNNCell(abc.ABC):
    """A cell that is called with a sequence [time, batch, n], or a list of [batch, n]."""

    @abc.abstractmethod
    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> tuple[Any, Any]:
        """Returns the outputs and the last state."""


class FusedRNNCellAdaptor(FusedRNNCell):
    """Makes a FusedRNNCell of an RNNCell, with `static_rnn` or `dynamic_rnn`."""

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False) -> None:
        self._cell = cell
        self._use_dynamic_rnn = use_dynamic_rnn

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> tuple[Any, Any]:
        is_list = isinstance(inputs, list)
        options = {"initial_state": initial_state, "dtype": dtype, "sequence_length": sequence_length, "scope": scope}
        if self._use_dynamic_rnn:
            stacked = tf.stack(inputs) if is_list else inputs
            outputs, state = v1.nn.dynamic_rnn(self._cell, stacked, time_major=True, **options)
            return (tf.unstack(outputs) if is_list else outputs), state
        steps = inputs if is_list else tf.unstack(inputs)
        outputs, state = v1.nn.static_rnn(self._cell, steps, **options)
        return (outputs if is_list else tf.stack(outputs)), state


class TimeReversedFusedRNN(FusedRNNCell):
    """Runs a FusedRNNCell from the end of each sequence to its beginning."""

    def __init__(self, cell: FusedRNNCell) -> None:
        self._cell = cell

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> tuple[Any, Any]:
        outputs, state = self._cell(_reverse(inputs, sequence_length), initial_state, dtype, sequence_length, scope)
        return _reverse(outputs, sequence_length), state


class LSTMBlockWrapper(FusedRNNCell):
    """A FusedRNNCell with the state (c, h); a subclass implements `num_units` and `_call_cell`."""

    @property
    @abc.abstractmethod
    def num_units(self) -> int:
        """Number of units."""

    @abc.abstractmethod
    def _call_cell(
        self, inputs: Any, initial_cell_state: Any, initial_output: Any, dtype: Any, sequence_length: Any
    ) -> tuple[Any, Any]:
        """Returns c and h of every step, [time, batch, num_units]."""

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> tuple[Any, Any]:
        with v1.variable_scope(scope or "lstm_block_wrapper"):
            is_list = isinstance(inputs, list)
            inputs = tf.stack(inputs) if is_list else tf.convert_to_tensor(inputs)
            if initial_state is None:
                if dtype is None:
                    raise ValueError("dtype or initial_state is required: both are None")
                zeros = tf.zeros([tf.shape(inputs)[1], self.num_units], dtype)
                initial_state = (zeros, zeros)
            first_c, first_h = initial_state
            c, h = self._call_cell(inputs, first_c, first_h, dtype or first_c.dtype, sequence_length)
            if sequence_length is None:
                state = LSTMStateTuple(c[-1], h[-1])
            else:
                mask = tf.transpose(tf.sequence_mask(sequence_length, tf.shape(inputs)[0], dtype=h.dtype))
                h *= mask[:, :, None]
                state = LSTMStateTuple(_at(sequence_length, first_c, c), _at(sequence_length, first_h, h))
            return (tf.unstack(h) if is_list else h), state


class LSTMBlockFusedCell(LSTMBlockWrapper):
    """LSTM over a whole sequence in one kernel, with the variables of LSTMCell.

    Args:
      num_units: number of units.
      forget_bias: added to the forget gate.
      cell_clip: c is clipped to [-cell_clip, cell_clip]. Default: not clipped.
      use_peephole: whether the gates see the state.
      reuse: whether to use existing variables.
      name: name of the variable scope.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: bool | None = None,
        name: str = "lstm_fused_cell",
    ) -> None:
        self._num_units = num_units
        self._settings = {"forget_bias": forget_bias, "cell_clip": cell_clip, "use_peephole": use_peephole}
        self._reuse = reuse
        self._name = name
        self._scope: Any = None

    @property
    def num_units(self) -> int:
        """Number of units."""
        return self._num_units

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> tuple[Any, Any]:
        """Returns the outputs and the last state; a second call uses the variables of the first."""
        again = self._scope is not None
        with v1.variable_scope(
            self._scope or scope, self._name, reuse=True if again else self._reuse, auxiliary_name_scope=not again
        ) as self._scope:
            return super().__call__(inputs, initial_state, dtype, sequence_length, self._scope)

    def _call_cell(
        self, inputs: Any, initial_cell_state: Any, initial_output: Any, dtype: Any, sequence_length: Any
    ) -> tuple[Any, Any]:
        steps = tf.shape(inputs)[0] if sequence_length is None else tf.reduce_max(sequence_length)
        return _block_lstm(steps, inputs, (initial_cell_state, initial_output), self._settings)


class LSTMBlockCell(RNNCell):
    """LSTM in one kernel per step, with the variables of LSTMCell; arguments as in `LSTMBlockFusedCell`."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: bool | None = None,
        name: str = "lstm_cell",
    ) -> None:
        super().__init__(_reuse=reuse, dtype=dtype, name=name)
        self._num_units = num_units
        self._settings = {"forget_bias": forget_bias, "cell_clip": cell_clip, "use_peephole": use_peephole}

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        c, h = _block_lstm(1, inputs[None], tuple(state), self._settings)
        return h[0], LSTMStateTuple(c[0], h[0])


class GRUBlockCellV2(RNNCell):
    """GRU with the variables of GRUCell. Computed by plain operations: the kernel has no gradient in TensorFlow 2."""

    _NAMES = {"gates": ("gates/kernel", "gates/bias"), "candidate": ("candidate/kernel", "candidate/bias")}

    def __init__(
        self,
        num_units: int | None = None,
        cell_size: int | None = None,
        reuse: bool | None = None,
        name: str = "gru_cell",
    ) -> None:
        super().__init__(_reuse=reuse, name=name)
        units = num_units or cell_size
        if units is None or None not in (num_units, cell_size):
            raise ValueError(f"pass num_units or cell_size, not both: got {num_units} and {cell_size}")
        self._cell_size = units

    @property
    def state_size(self) -> int:
        return self._cell_size

    @property
    def output_size(self) -> int:
        return self._cell_size

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        gates = tf.sigmoid(self._affine("gates", [inputs, state], 2 * self._cell_size, 1.0))
        r, u = tf.split(gates, 2, axis=1)
        candidate = tf.tanh(self._affine("candidate", [inputs, state * r], self._cell_size, 0.0))
        state = (1 - u) * candidate + u * state
        return state, state

    def _affine(self, part: str, inputs: list[Any], size: int, bias: float) -> Any:
        joined = tf.concat(inputs, axis=1)
        kernel_name, bias_name = self._NAMES[part]
        kernel = v1.get_variable(kernel_name, [joined.shape[1], size], joined.dtype)
        biases = v1.get_variable(bias_name, [size], joined.dtype, v1.constant_initializer(bias))
        return tf.matmul(joined, kernel) + biases


class GRUBlockCell(GRUBlockCellV2):
    """`GRUBlockCellV2` with the older names of its variables: `w_ru`, `b_ru`, `w_c`, `b_c`."""

    _NAMES = {"gates": ("w_ru", "b_ru"), "candidate": ("w_c", "b_c")}


def _block_lstm(steps: Any, inputs: Any, state: Any, settings: dict[str, Any]) -> tuple[Any, Any]:
    """Returns c and h of every step, [time, batch, units], by TensorFlow's kernel; it has a gradient."""
    first_c, first_h = state
    units, dtype = first_c.shape[1], inputs.dtype
    kernel = v1.get_variable("kernel", [inputs.shape[2] + units, 4 * units], dtype)
    bias = v1.get_variable("bias", [4 * units], dtype, v1.zeros_initializer())
    if settings["use_peephole"]:
        peepholes = [v1.get_variable(name, [units], dtype) for name in ("w_i_diag", "w_f_diag", "w_o_diag")]
    else:
        peepholes = [tf.zeros([units], dtype)] * 3
    result = tf.raw_ops.BlockLSTM(
        seq_len_max=tf.cast(steps, tf.int64),
        x=inputs,
        cs_prev=first_c,
        h_prev=first_h,
        w=kernel,
        wci=peepholes[0],
        wcf=peepholes[1],
        wco=peepholes[2],
        b=bias,
        forget_bias=settings["forget_bias"],
        # The kernel does not clip at a negative value.
        cell_clip=-1.0 if settings["cell_clip"] is None else settings["cell_clip"],
        use_peephole=settings["use_peephole"],
    )
    return result.cs, result.h


def _at(lengths: Any, first: Any, steps: Any) -> Any:
    """Returns the state after the last step of each sequence; that before the first step if it is empty."""
    states = tf.concat([first[None], steps], axis=0)
    rows = tf.range(tf.shape(first)[0])
    return tf.gather_nd(states, tf.stack([tf.cast(lengths, tf.int32), rows], axis=1))


def _reverse(sequence: Any, lengths: Any) -> Any:
    if isinstance(sequence, list):
        return tf.unstack(_reverse(tf.stack(sequence), lengths))
    if lengths is None:
        return tf.reverse(sequence, [0])
    return tf.reverse_sequence(sequence, lengths, seq_axis=0, batch_axis=1)

"""`tf.contrib.cudnn_rnn`: its layers and cells, computed on every device, with the variables of its checkpoints."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

__all__ = ["CudnnCompatibleGRUCell", "CudnnCompatibleLSTMCell", "CudnnGRU", "CudnnLSTM"]

CUDNN_RNN_UNIDIRECTION = "unidirectional"
CUDNN_RNN_BIDIRECTION = "bidirectional"


class CudnnCompatibleLSTMCell(tf.nn.rnn_cell.LSTMCell):
    """An LSTM cell with the arithmetic and the variable names of cuDNN: no forget bias.

    Args:
      num_units: size of the state.
      reuse: whether to use existing variables.
    """

    def __init__(self, num_units: int, reuse: bool | None = None, **kwargs: Any) -> None:
        super().__init__(num_units, forget_bias=0.0, reuse=reuse, name="cudnn_compatible_lstm_cell", **kwargs)


class CudnnCompatibleGRUCell(tf.nn.rnn_cell.GRUCell):
    """A GRU cell with the arithmetic of cuDNN: the reset gate acts after the product with the recurrent weights.

    Args:
      num_units: size of the state.
      reuse: whether to use existing variables.
      kernel_initializer: of the weights.
    """

    def __init__(self, num_units: int, reuse: bool | None = None, kernel_initializer: Any = None) -> None:
        super().__init__(
            num_units, reuse=reuse, kernel_initializer=kernel_initializer, name="cudnn_compatible_gru_cell"
        )

    def build(self, inputs_shape: Any) -> None:
        """Creates the variables."""
        depth = tf.TensorShape(inputs_shape).as_list()[-1]
        units = self._num_units
        more = {"initializer": self._kernel_initializer}
        self._gate_kernel = self.add_weight("gates/kernel", shape=[depth + units, 2 * units], **more)
        self._gate_bias = self.add_weight("gates/bias", shape=[2 * units], initializer=tf.ones_initializer())
        zeros = tf.zeros_initializer()
        self._input_kernel = self.add_weight("candidate/input_projection/kernel", shape=[depth, units], **more)
        self._hidden_kernel = self.add_weight("candidate/hidden_projection/kernel", shape=[units, units], **more)
        self._input_bias = self.add_weight("candidate/input_projection/bias", shape=[units], initializer=zeros)
        self._hidden_bias = self.add_weight("candidate/hidden_projection/bias", shape=[units], initializer=zeros)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Returns the output, which is the new state, twice."""
        gates = tf.sigmoid(tf.matmul(tf.concat([inputs, state], 1), self._gate_kernel) + self._gate_bias)
        reset, update = tf.split(gates, 2, axis=1)
        hidden = tf.matmul(state, self._hidden_kernel) + self._hidden_bias
        candidate = tf.tanh(tf.matmul(inputs, self._input_kernel) + self._input_bias + reset * hidden)
        new = (1 - update) * candidate + update * state
        return new, new


class _CudnnLayer:
    """Layers of cells in one or both directions, on [time, batch, depth]."""

    _scope = ""
    _cell: Any = None

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_mode: str = "linear_input",
        direction: str = CUDNN_RNN_UNIDIRECTION,
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: Any = tf.float32,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
    ) -> None:
        if direction not in (CUDNN_RNN_UNIDIRECTION, CUDNN_RNN_BIDIRECTION):
            raise ValueError(
                f"direction={direction!r}: expected {CUDNN_RNN_UNIDIRECTION!r} or {CUDNN_RNN_BIDIRECTION!r}."
            )
        if input_mode not in ("linear_input", "auto_select"):
            raise NotImplementedError(f"input_mode={input_mode!r}: only 'linear_input' is available.")
        if bias_initializer is not None:
            raise NotImplementedError("bias_initializer: leave it out; biases start at 0.")
        self.num_layers, self.num_units, self.direction = num_layers, num_units, direction
        self.num_dirs = 2 if direction == CUDNN_RNN_BIDIRECTION else 1
        self._dropout, self._seed, self._dtype = dropout, seed, dtype
        self._initializer, self._name = kernel_initializer, name or self._scope

    def _cells(self) -> list[Any]:
        return [self._cell(self.num_units) for _ in range(self.num_layers)]

    def __call__(self, inputs: Any, initial_state: Any = None, training: Any = True) -> tuple[Any, tuple[Any, ...]]:
        """Returns the outputs [time, batch, directions * units] and the states [layers * directions, batch, units].

        Args:
          inputs: [time, batch, depth].
          initial_state: a tuple of states; zeros by default.
          training: whether to apply dropout between the layers.
        """
        inputs = tf.convert_to_tensor(inputs, dtype=self._dtype)
        parts = None if initial_state is None else [tf.unstack(part) for part in initial_state]
        ends: list[Any] = []
        with tf.variable_scope(self._name, initializer=self._initializer):
            if self.num_dirs == 1:
                layer = self._one_way(inputs, parts, training, ends)
            else:
                layer = self._both_ways(inputs, parts, training, ends)
        return layer, tuple(tf.stack(list(part)) for part in zip(*ends, strict=True))

    call = __call__

    def _one_way(self, layer: Any, parts: Any, training: Any, ends: list[Any]) -> Any:
        with tf.variable_scope("rnn/multi_rnn_cell"):
            for number, cell in enumerate(self._cells()):
                start = self._start(parts, number)
                layer = self._dropped(layer, number, training)
                with tf.variable_scope(f"cell_{number}") as scope:
                    layer, end = _unrolled(cell, layer, start, scope)
                ends.append(self._end(end))
        return layer

    def _both_ways(self, layer: Any, parts: Any, training: Any, ends: list[Any]) -> Any:
        with tf.variable_scope("stack_bidirectional_rnn"):
            for number, (forward, backward) in enumerate(zip(self._cells(), self._cells(), strict=True)):
                starts = [self._start(parts, 2 * number + way) for way in (0, 1)]
                layer = self._dropped(layer, number, training)
                with tf.variable_scope(f"cell_{number}/bidirectional_rnn"):
                    with tf.variable_scope("fw") as scope:
                        ahead, first = _unrolled(forward, layer, starts[0], scope)
                    with tf.variable_scope("bw") as scope:
                        back, second = _unrolled(backward, tf.reverse(layer, [0]), starts[1], scope)
                layer = tf.concat([ahead, tf.reverse(back, [0])], 2)
                ends.extend([self._end(first), self._end(second)])
        return layer

    def _dropped(self, layer: Any, number: int, training: Any) -> Any:
        if not self._dropout or number == 0:
            return layer
        return tf.layers.dropout(layer, self._dropout, training=training, seed=self._seed)

    def _start(self, parts: Any, number: int) -> Any:
        raise NotImplementedError

    def _end(self, state: Any) -> tuple[Any, ...]:
        raise NotImplementedError


def _unrolled(cell: Any, inputs: Any, start: Any, scope: Any) -> Any:
    return tf.nn.dynamic_rnn(cell, inputs, initial_state=start, dtype=inputs.dtype, time_major=True, scope=scope)


class CudnnLSTM(_CudnnLayer):
    """Layers of LSTM cells; the states are (h, c)."""

    _scope = "cudnn_lstm"
    _cell = CudnnCompatibleLSTMCell

    def _start(self, parts: Any, number: int) -> Any:
        if parts is None:
            return None
        h, c = parts
        return tf.nn.rnn_cell.LSTMStateTuple(c[number], h[number])

    def _end(self, state: Any) -> tuple[Any, ...]:
        return state.h, state.c


class CudnnGRU(_CudnnLayer):
    """Layers of GRU cells; the states are (h,)."""

    _scope = "cudnn_gru"
    _cell = CudnnCompatibleGRUCell

    def _start(self, parts: Any, number: int) -> Any:
        return None if parts is None else parts[0][number]

    def _end(self, state: Any) -> tuple[Any, ...]:
        return (state,)

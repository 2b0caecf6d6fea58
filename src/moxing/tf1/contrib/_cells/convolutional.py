"""LSTM cells with convolutions in place of matrix products (https://arxiv.org/abs/1506.04214)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1
RNNCell: Any = v1.nn.rnn_cell.RNNCell
LSTMStateTuple = v1.nn.rnn_cell.LSTMStateTuple


class ConvLSTMCell(RNNCell):
    """A convolutional LSTM.

    Args:
      conv_ndims: 1, 2 or 3.
      input_shape: shape of an input without the batch: `conv_ndims` sizes and the channels.
      output_channels: number of channels of the state.
      kernel_shape: `conv_ndims` sizes.
      use_bias: whether to add biases.
      skip_connection: whether to append the input to the output.
      forget_bias: added to the forget gate.
      initializers: initializers by variable, with the keys `kernel` and `biases`.
      name: name of the cell and its variable scope.
    """

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Sequence[int],
        output_channels: int,
        kernel_shape: Sequence[int],
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: dict[str, Any] | None = None,
        name: str = "conv_lstm_cell",
    ) -> None:
        super().__init__(name=name)
        if len(input_shape) != conv_ndims + 1:
            raise ValueError(f"input_shape must have {conv_ndims + 1} sizes for conv_ndims={conv_ndims}: {input_shape}")
        self._ndims = conv_ndims
        self._input_shape = list(input_shape)
        self._channels = output_channels
        self._kernel_shape = list(kernel_shape)
        self._use_bias = use_bias
        self._skip_connection = skip_connection
        self._forget_bias = forget_bias
        self._initializers = initializers or {}

    @property
    def state_size(self) -> Any:
        size = tf.TensorShape([*self._input_shape[:-1], self._channels])
        return LSTMStateTuple(size, size)

    @property
    def output_size(self) -> Any:
        channels = self._channels + (self._input_shape[-1] if self._skip_connection else 0)
        return tf.TensorShape([*self._input_shape[:-1], channels])

    def call(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        c, h = state
        joined = tf.concat([inputs, h], axis=-1)
        kernel = v1.get_variable(
            "kernel",
            [*self._kernel_shape, joined.shape[-1], 4 * self._channels],
            inputs.dtype,
            self._initializers.get("kernel"),
        )
        gates = tf.nn.convolution(joined, kernel, padding="SAME")
        if self._use_bias:
            start = self._initializers.get("biases") or v1.zeros_initializer()
            gates += v1.get_variable("biases", [4 * self._channels], inputs.dtype, start)
        i, j, f, o = tf.split(gates, 4, axis=-1)
        c = tf.sigmoid(f + self._forget_bias) * c + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
        # TensorFlow 1 put the appended input into the state too, which then had the wrong size.
        output = tf.concat([h, inputs], axis=-1) if self._skip_connection else h
        return output, LSTMStateTuple(c, h)


class Conv1DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` over [batch, length, channels]."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` over [batch, height, width, channels]."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` over [batch, depth, height, width, channels]."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=3, name=name, **kwargs)

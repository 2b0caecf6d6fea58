"""Cells with gates: LSTM variants and the cells of later papers."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from moxing.tf1.contrib._cells.linear import linear

v1 = tf.compat.v1
RNNCell: Any = v1.nn.rnn_cell.RNNCell
LSTMStateTuple = v1.nn.rnn_cell.LSTMStateTuple


class _UnitCell(RNNCell):
    """A cell with `num_units` units, whose state and output are [batch, num_units]."""

    def __init__(self, num_units: int, reuse: bool | None = None, name: str | None = None) -> None:
        super().__init__(_reuse=reuse, name=name)
        self._num_units = num_units

    @property
    def state_size(self) -> Any:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units


class _LSTMLikeCell(_UnitCell):
    """A cell with the state (c, h); h, which is the output, may be projected."""

    def __init__(self, num_units: int, num_proj: int | None = None, reuse: bool | None = None) -> None:
        super().__init__(num_units, reuse)
        self._num_proj = num_proj

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units


def layer_norm(inputs: Any, scope: str, gain: float, shift: float) -> Any:
    """Normalises every row (https://arxiv.org/abs/1607.06450), with the variables `gamma` and `beta` of a scope."""
    size, dtype = inputs.shape[-1:], inputs.dtype
    with v1.variable_scope(scope):
        gamma = v1.get_variable("gamma", size, dtype, v1.constant_initializer(gain))
        beta = v1.get_variable("beta", size, dtype, v1.constant_initializer(shift))
    mean, variance = tf.nn.moments(inputs, axes=[-1], keepdims=True)
    # tf.contrib.layers.layer_norm has this constant.
    return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-12)


class LayerNormBasicLSTMCell(_LSTMLikeCell):
    """LSTM with layer normalisation and recurrent dropout (https://arxiv.org/abs/1603.05118).

    Args:
      num_units: number of units.
      forget_bias: added to the forget gate.
      input_size: unused, as in TensorFlow 1.12.
      activation: activation of the states.
      layer_norm: whether to normalise gates and state.
      norm_gain: initial value of `gamma`.
      norm_shift: initial value of `beta`.
      dropout_keep_prob: how much of the new input is kept; float or tensor.
      dropout_prob_seed: seed of the dropout.
      reuse: whether to use existing variables.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: Any = None,
        activation: Any = tf.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(num_units, reuse=reuse)
        self._forget_bias = forget_bias
        self._activation = activation
        self._layer_norm = layer_norm
        self._norm = (norm_gain, norm_shift)
        self._keep_prob = dropout_keep_prob
        self._seed = dropout_prob_seed

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        c, h = state
        gates = linear([inputs, h], 4 * self._num_units, not self._layer_norm)
        i, j, f, o = tf.split(gates, 4, axis=1)
        i, j, f, o = (
            self._normalised(gate, scope)
            for gate, scope in ((i, "input"), (j, "transform"), (f, "forget"), (o, "output"))
        )
        new = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            new = v1.nn.dropout(new, rate=1 - self._keep_prob, seed=self._seed)
        c = self._normalised(c * tf.sigmoid(f + self._forget_bias) + tf.sigmoid(i) * new, "state")
        h = self._activation(c) * tf.sigmoid(o)
        return h, LSTMStateTuple(c, h)

    def _normalised(self, inputs: Any, scope: str) -> Any:
        return layer_norm(inputs, scope, *self._norm) if self._layer_norm else inputs


class CoupledInputForgetGateLSTMCell(_LSTMLikeCell):
    """LSTM whose input gate is 1 - its forget gate (https://arxiv.org/abs/1503.04069).

    Args:
      num_units: number of units.
      use_peepholes: whether the gates see the state.
      initializer: initializer of the matrices.
      num_proj: size of the projected output. Default: no projection.
      proj_clip: the projected output is clipped to [-proj_clip, proj_clip].
      num_unit_shards: only 1: TensorFlow 1 could store the matrix in parts.
      num_proj_shards: only 1.
      forget_bias: added to the forget gate.
      state_is_tuple: whether the state is (c, h), or their concatenation.
      activation: activation of the states.
      reuse: whether to use existing variables.
      layer_norm: whether to normalise gates and state.
      norm_gain: initial value of `gamma`.
      norm_shift: initial value of `beta`.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int = 1,
        num_proj_shards: int = 1,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = tf.tanh,
        reuse: bool | None = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
    ) -> None:
        super().__init__(num_units, num_proj, reuse)
        if (num_unit_shards, num_proj_shards) != (1, 1):
            raise ValueError(
                f"num_unit_shards and num_proj_shards must be 1, got {num_unit_shards} and {num_proj_shards}; "
                "use a partitioner in the variable scope to split variables"
            )
        self._use_peepholes = use_peepholes
        self._initializer = initializer
        self._proj_clip = proj_clip
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation
        self._layer_norm = layer_norm
        self._norm = (norm_gain, norm_shift)

    @property
    def state_size(self) -> Any:
        sizes = LSTMStateTuple(self._num_units, self.output_size)
        return sizes if self._state_is_tuple else sum(sizes)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        units = self._num_units
        c, h = state if self._state_is_tuple else tf.split(state, [units, self.output_size], axis=1)
        joined, dtype = tf.concat([inputs, h], axis=1), inputs.dtype
        kernel = v1.get_variable("W_0", [joined.shape[1], 3 * units], dtype, self._initializer)
        bias = v1.get_variable("B", [3 * units], dtype, v1.zeros_initializer())
        gates = tf.matmul(joined, kernel)
        j, f, o = tf.split(gates if self._layer_norm else tf.nn.bias_add(gates, bias), 3, axis=1)
        j, f, o = (self._normalised(gate, scope) for gate, scope in ((j, "transform"), (f, "forget"), (o, "output")))
        if self._use_peepholes:
            f += v1.get_variable("W_F_diag", [units], dtype) * c
        forget = tf.sigmoid(f + self._forget_bias)
        c = self._normalised(forget * c + (1 - forget) * self._activation(j), "state")
        if self._use_peepholes:
            o += v1.get_variable("W_O_diag", [units], dtype) * c
        h = tf.sigmoid(o) * self._activation(c)
        if self._num_proj:
            h = tf.matmul(h, v1.get_variable("W_P_0", [units, self._num_proj], dtype, self._initializer))
            if self._proj_clip is not None:
                h = tf.clip_by_value(h, -self._proj_clip, self._proj_clip)
        return h, LSTMStateTuple(c, h) if self._state_is_tuple else tf.concat([c, h], axis=1)

    def _normalised(self, inputs: Any, scope: str) -> Any:
        return layer_norm(inputs, scope, *self._norm) if self._layer_norm else inputs


class NASCell(_LSTMLikeCell):
    """The cell that architecture search found (https://arxiv.org/abs/1611.01578).

    Args:
      num_units: number of units.
      num_proj: size of the projected output. Default: no projection.
      use_biases: whether to add biases.
      reuse: whether to use existing variables.
    """

    def __init__(
        self, num_units: int, num_proj: int | None = None, use_biases: bool = False, reuse: bool | None = None
    ) -> None:
        super().__init__(num_units, num_proj, reuse)
        self._use_biases = use_biases

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        c, h = state
        units, dtype = self._num_units, inputs.dtype
        recurrent = tf.matmul(h, v1.get_variable("recurrent_kernel", [self.output_size, 8 * units], dtype))
        given = tf.matmul(inputs, v1.get_variable("kernel", [inputs.shape[1], 8 * units], dtype))
        if self._use_biases:
            recurrent += v1.get_variable("bias", [8 * units], dtype, v1.zeros_initializer())
        pairs = list(zip(tf.split(given, 8, axis=1), tf.split(recurrent, 8, axis=1), strict=True))
        sums = [x + m for x, m in pairs]
        # The tree of the paper: eight leaves, of which the fourth is a product, joined in pairs.
        first = tf.tanh(tf.sigmoid(sums[0]) * tf.nn.relu(sums[1]))
        second = tf.tanh(tf.sigmoid(sums[2]) + tf.nn.relu(pairs[3][0] * pairs[3][1]))
        third = tf.tanh(tf.tanh(sums[4]) * tf.sigmoid(sums[5]))
        fourth = tf.sigmoid(tf.tanh(sums[6]) + tf.sigmoid(sums[7]))
        c = tf.tanh(first + c) * second
        h = tf.tanh(c * tf.tanh(third + fourth))
        if self._num_proj:
            h = tf.matmul(h, v1.get_variable("projection_weights", [units, self._num_proj], dtype))
        return h, LSTMStateTuple(c, h)


class UGRNNCell(_UnitCell):
    """Update gate RNN (https://arxiv.org/abs/1611.09913): one gate between the state and a new one."""

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        forget_bias: float = 1.0,
        activation: Any = tf.tanh,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(num_units, reuse)
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._activation = activation

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        with v1.variable_scope(v1.get_variable_scope(), initializer=self._initializer):
            g, c = tf.split(linear([inputs, state], 2 * self._num_units, True), 2, axis=1)
        gate = tf.sigmoid(g + self._forget_bias)
        state = gate * state + (1 - gate) * self._activation(c)
        return state, state


class IntersectionRNNCell(_UnitCell):
    """+RNN (https://arxiv.org/abs/1611.09913): a gate over time and one over depth.

    Args:
      num_units: number of units, which is also the size of the inputs.
      num_in_proj: whether to project inputs of another size; its value is not used otherwise, as in TensorFlow 1.12.
      initializer: initializer of the matrices.
      forget_bias: added to both gates.
      y_activation: activation of the output.
      reuse: whether to use existing variables.
    """

    def __init__(
        self,
        num_units: int,
        num_in_proj: int | None = None,
        initializer: Any = None,
        forget_bias: float = 1.0,
        y_activation: Any = tf.nn.relu,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(num_units, reuse)
        self._num_in_proj = num_in_proj
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._y_activation = y_activation

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        units = self._num_units
        with v1.variable_scope(v1.get_variable_scope(), initializer=self._initializer):
            if inputs.shape[1] != units:
                if not self._num_in_proj:
                    raise ValueError(
                        f"inputs of IntersectionRNNCell must have {units} columns, got {inputs.shape[1]}; "
                        f"pass num_in_proj={units} to project them"
                    )
                with v1.variable_scope("in_projection"):
                    inputs = linear(inputs, units, True)
            time_gate, h, depth_gate, y = tf.split(linear([inputs, state], 4 * units, True), 4, axis=1)
        time_gate, depth_gate = (tf.sigmoid(gate + self._forget_bias) for gate in (time_gate, depth_gate))
        state = time_gate * state + (1 - time_gate) * tf.tanh(h)
        return depth_gate * inputs + (1 - depth_gate) * self._y_activation(y), state


class GLSTMCell(_LSTMLikeCell):
    """Group LSTM (https://arxiv.org/abs/1703.10722): each group of units has its own part of inputs and output.

    Args:
      num_units: number of units, divisible by `number_of_groups`.
      initializer: initializer of the matrices.
      num_proj: size of the projected output, divisible by `number_of_groups`. Default: no projection.
      number_of_groups: number of groups.
      forget_bias: added to the forget gate.
      activation: activation of the state.
      reuse: whether to use existing variables.
    """

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        num_proj: int | None = None,
        number_of_groups: int = 1,
        forget_bias: float = 1.0,
        activation: Any = tf.tanh,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(num_units, num_proj, reuse)
        for name, value in (("num_units", num_units), ("num_proj", num_proj or 0)):
            if value % number_of_groups:
                raise ValueError(f"{name} must be divisible by number_of_groups ({number_of_groups}), got {value}")
        self._initializer = initializer
        self._groups = number_of_groups
        self._forget_bias = forget_bias
        self._activation = activation

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        c, h = state
        units, dtype = self._num_units, inputs.dtype
        with v1.variable_scope(v1.get_variable_scope(), initializer=self._initializer):
            parts = []
            pairs = zip(tf.split(inputs, self._groups, axis=1), tf.split(h, self._groups, axis=1), strict=True)
            for group, pair in enumerate(pairs):
                with v1.variable_scope(f"group{group}"):
                    parts.append(tf.split(linear(list(pair), 4 * units // self._groups, False), 4, axis=1))
            i, j, f, o = (
                tf.concat(gate, axis=1) + v1.get_variable(f"bias_{name}", [units], dtype, v1.zeros_initializer())
                for name, gate in zip("ijfo", zip(*parts, strict=True), strict=True)
            )
            c = tf.sigmoid(f + self._forget_bias) * c + tf.sigmoid(i) * tf.tanh(j)
            h = tf.sigmoid(o) * self._activation(c)
            if self._num_proj:
                with v1.variable_scope("projection"):
                    h = linear(h, self._num_proj, False)
        return h, LSTMStateTuple(c, h)

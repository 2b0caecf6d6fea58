"""Phased LSTM (https://arxiv.org/abs/1610.09513): units that are open for a part of a period of their own."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from moxing.tf1.contrib._cells.linear import linear

v1 = tf.compat.v1
RNNCell: Any = v1.nn.rnn_cell.RNNCell
LSTMStateTuple = v1.nn.rnn_cell.LSTMStateTuple


class PhasedLSTMCell(RNNCell):
    """A cell whose inputs are (time [batch, 1], features [batch, n]).

    Args:
      num_units: number of units.
      use_peepholes: whether the gates see the state.
      leak: how far a closed unit is open.
      ratio_on: the open part of the period, initially.
      trainable_ratio_on: whether to train it.
      period_init_min: smallest initial period.
      period_init_max: largest initial period; the logarithm of a period is uniform.
      reuse: whether to use existing variables.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        leak: float = 0.001,
        ratio_on: float = 0.1,
        trainable_ratio_on: bool = True,
        period_init_min: float = 1.0,
        period_init_max: float = 1000.0,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._leak = leak
        self._ratio_on = ratio_on
        self._trainable_ratio_on = trainable_ratio_on
        self._log_periods = (math.log(period_init_min), math.log(period_init_max))

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        time, features = inputs
        c, h = state
        units = self._num_units
        with v1.variable_scope("mask_gates"):
            gates = linear([features, h, *([c] if self._use_peepholes else [])], 2 * units, True)
        input_gate, forget_gate = tf.split(tf.sigmoid(gates), 2, axis=1)
        with v1.variable_scope("new_input"):
            new_input = tf.tanh(linear([features, h], units, True))
        new_c = c * forget_gate + input_gate * new_input
        with v1.variable_scope("output_gate"):
            gate = linear([features, h, *([new_c] if self._use_peepholes else [])], units, True)
        new_h = tf.tanh(new_c) * tf.sigmoid(gate)
        openness = self._openness(time)
        new_c = openness * new_c + (1 - openness) * c
        new_h = openness * new_h + (1 - openness) * h
        return new_h, LSTMStateTuple(new_c, new_h)

    def _openness(self, time: Any) -> Any:
        """Returns how far each unit is open at a time, [batch, units]."""
        shape = [self._num_units]
        period = v1.get_variable("period", shape, initializer=self._random_periods)
        phase = v1.get_variable("phase", shape, initializer=_Below(period))
        ratio_on = v1.get_variable(
            "ratio_on",
            shape,
            initializer=v1.constant_initializer(self._ratio_on),
            trainable=self._trainable_ratio_on,
        )
        # In the type of the time: float64 keeps fractions of large times.
        shifted, whole = time - tf.cast(phase, time.dtype), tf.cast(period, time.dtype)
        remainder = tf.stop_gradient(tf.math.floormod(shifted, whole) - shifted) + shifted
        cycle = tf.cast(remainder / whole, tf.float32)
        rising = 2 * cycle / ratio_on
        closing = tf.where(cycle < ratio_on, 2 - rising, self._leak * cycle)
        return tf.where(cycle < 0.5 * ratio_on, rising, closing)

    def _random_periods(self, shape: Any, dtype: Any = tf.float32, partition_info: Any = None) -> Any:
        return tf.exp(tf.random.uniform(shape, *self._log_periods, dtype))


class _Below:
    """Initial values between 0 and the initial values of another variable."""

    def __init__(self, limit: Any) -> None:
        self._limit = limit

    def __call__(self, shape: Any, dtype: Any = tf.float32, partition_info: Any = None) -> Any:
        return tf.random.uniform(shape, dtype=dtype) * self._limit.initial_value

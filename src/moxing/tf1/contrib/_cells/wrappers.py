"""Cells around cells: projections, embeddings, attention over the last outputs, highway connections."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from moxing.tf1.contrib._cells import scopes
from moxing.tf1.contrib._cells.linear import linear

v1 = tf.compat.v1
RNNCell: Any = v1.nn.rnn_cell.RNNCell

scopes.repair()


class _Wrapper(RNNCell):
    """A cell that has the sizes of the cell in it."""

    def __init__(self, cell: Any, reuse: bool | None = None) -> None:
        super().__init__(_reuse=reuse)
        if not (callable(cell) and hasattr(cell, "state_size") and hasattr(cell, "output_size")):
            raise TypeError(f"cell must be an RNNCell, got {cell!r}")
        self._cell = cell

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Returns the zero state of the cell."""
        with tf.name_scope(type(self).__name__ + "ZeroState"):
            return self._cell.zero_state(batch_size, dtype)


class InputProjectionWrapper(_Wrapper):
    """Projects the input of a cell to `num_proj` columns. `input_size` is unused, as in TensorFlow 1.12."""

    def __init__(
        self, cell: Any, num_proj: int, activation: Any = None, input_size: Any = None, reuse: bool | None = None
    ) -> None:
        super().__init__(cell, reuse)
        self._num_proj = num_proj
        self._activation = activation

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        projected = linear(inputs, self._num_proj, True)
        return self._cell(self._activation(projected) if self._activation else projected, state)


class OutputProjectionWrapper(_Wrapper):
    """Projects the output of a cell to `output_size` columns."""

    def __init__(self, cell: Any, output_size: int, activation: Any = None, reuse: bool | None = None) -> None:
        super().__init__(cell, reuse)
        if output_size < 1:
            raise ValueError(f"output_size must be at least 1, got {output_size}")
        self._output_size = output_size
        self._activation = activation

    @property
    def output_size(self) -> int:
        return self._output_size

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        output, state = self._cell(inputs, state)
        projected = linear(output, self._output_size, True)
        return (self._activation(projected) if self._activation else projected), state


class EmbeddingWrapper(_Wrapper):
    """Looks up the embedding of its input, an integer per row, and passes it to a cell."""

    def __init__(
        self,
        cell: Any,
        embedding_classes: int,
        embedding_size: int,
        initializer: Any = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(cell, reuse)
        if embedding_classes < 1 or embedding_size < 1:
            raise ValueError(
                f"embedding_classes and embedding_size must be at least 1, got {embedding_classes}, {embedding_size}"
            )
        self._shape = [embedding_classes, embedding_size]
        self._initializer = initializer

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        # A variance of 1, unless the scope says otherwise.
        initializer = (
            self._initializer
            or v1.get_variable_scope().initializer
            or v1.random_uniform_initializer(-(3.0**0.5), 3.0**0.5)
        )
        dtype = tf.nest.flatten(state)[0].dtype
        with tf.device("/cpu:0"):
            embedding = v1.get_variable("embedding", self._shape, initializer=initializer, dtype=dtype)
            embedded = v1.nn.embedding_lookup(embedding, tf.reshape(inputs, [-1]))
        return self._cell(embedded, state)


class AttentionCellWrapper(_Wrapper):
    """Attends to the last `attn_length` outputs of a cell (https://arxiv.org/abs/1409.0473).

    Args:
      cell: an RNNCell.
      attn_length: number of outputs.
      attn_size: size of an attention vector. Default: `cell.output_size`.
      attn_vec_size: size of the hidden layer of the attention. Default: `attn_size`.
      input_size: size of the input of the cell. Default: that of the inputs.
      state_is_tuple: whether the state is (state of the cell, attention, outputs) or their concatenation.
      reuse: whether to use existing variables.
    """

    def __init__(
        self,
        cell: Any,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(cell, reuse)
        if tf.nest.is_nested(cell.state_size) and not state_is_tuple:
            raise ValueError(f"state_is_tuple must be True: the state of the cell is a tuple, {cell.state_size}")
        if attn_length < 1:
            raise ValueError(f"attn_length must be at least 1, got {attn_length}")
        self._attn_length = attn_length
        self._attn_size = attn_size or cell.output_size
        self._attn_vec_size = attn_vec_size or self._attn_size
        self._input_size = input_size
        self._state_is_tuple = state_is_tuple

    @property
    def state_size(self) -> Any:
        sizes = (self._cell.state_size, self._attn_size, self._attn_size * self._attn_length)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        return self._attn_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Returns zeros of the sizes of `state_size`."""
        return v1.nn.rnn_cell.RNNCell.zero_state(self, batch_size, dtype)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        if self._state_is_tuple:
            state, attention, outputs = state
        else:
            sizes = [self._cell.state_size, self._attn_size, self._attn_size * self._attn_length]
            state, attention, outputs = tf.split(state, sizes, axis=1)
        outputs = tf.reshape(outputs, [-1, self._attn_length, self._attn_size])
        input_size = self._input_size or inputs.shape[1]
        cell_output, state = self._cell(linear([inputs, attention], input_size, True), state)
        attention = self._attend(tf.concat(tf.nest.flatten(state), axis=1), outputs)
        with v1.variable_scope("attn_output_projection"):
            output = linear([cell_output, attention], self._attn_size, True)
        outputs = tf.concat([outputs[:, 1:], output[:, None]], axis=1)
        outputs = tf.reshape(outputs, [-1, self._attn_length * self._attn_size])
        state = (state, attention, outputs)
        return output, state if self._state_is_tuple else tf.concat(state, axis=1)

    def _attend(self, query: Any, outputs: Any) -> Any:
        with v1.variable_scope("attention"):
            kernel = v1.get_variable("attn_w", [1, 1, self._attn_size, self._attn_vec_size])
            vector = v1.get_variable("attn_v", [self._attn_vec_size])
            keys = tf.einsum("bta,ah->bth", outputs, kernel[0, 0])
            hidden = linear(query, self._attn_vec_size, True)
            weights = tf.nn.softmax(tf.reduce_sum(vector * tf.tanh(keys + hidden[:, None]), axis=2))
            return tf.einsum("bt,bta->ba", weights, outputs)


class HighwayWrapper(_Wrapper):
    """Adds highway connections to a cell: output = carry * input + transform * cell output.

    Args:
      cell: an RNNCell with outputs as large as its inputs.
      couple_carry_transform_gates: whether transform is 1 - carry, or a gate of its own.
      carry_bias_init: initial bias of carry; that of transform is its negative.
    """

    def __init__(self, cell: Any, couple_carry_transform_gates: bool = True, carry_bias_init: float = 1.0) -> None:
        super().__init__(cell)
        self._coupled = couple_carry_transform_gates
        self._carry_bias = carry_bias_init

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        outputs, state = self._cell(inputs, state, scope=scope)
        tf.nest.assert_same_structure(inputs, outputs)
        return tf.nest.map_structure(self._combine, inputs, outputs), state

    def _combine(self, inputs: Any, outputs: Any) -> Any:
        inputs.shape.assert_is_compatible_with(outputs.shape)
        carry = self._gate("carry", inputs, self._carry_bias)
        transform = 1 - carry if self._coupled else self._gate("transform", inputs, -self._carry_bias)
        return inputs * carry + outputs * transform

    def _gate(self, name: str, inputs: Any, bias: float) -> Any:
        size = inputs.shape[1]
        weights = v1.get_variable(f"{name}_w", [size, size])
        biases = v1.get_variable(f"{name}_b", [size], initializer=v1.constant_initializer(bias))
        return tf.sigmoid(tf.matmul(inputs, weights) + biases)

"""A cell with attention to a memory."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from moxing.tf1.contrib._seq2seq.attention import AttentionMechanism, dense

v1 = tf.compat.v1
RNNCell: Any = v1.nn.rnn_cell.RNNCell


class AttentionWrapperState(
    collections.namedtuple(
        "AttentionWrapperState",
        ("cell_state", "attention", "time", "alignments", "alignment_history", "attention_state"),
    )
):
    """The state of an AttentionWrapper."""

    __slots__ = ()

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """Returns a copy with some fields replaced, such as `cell_state` by the last state of an encoder."""
        for name, value in kwargs.items():
            tf.nest.assert_same_structure(getattr(self, name), value)
        return self._replace(**kwargs)


class AttentionWrapper(RNNCell):
    """Runs a cell on its input and the last attention, and attends with the output of the cell as query.

    Args:
      cell: an RNNCell.
      attention_mechanism: an AttentionMechanism, or a list of them.
      attention_layer_size: size of the layer that makes the attention of cell output and context, or a list of sizes.
        Default: the attention is the context.
      alignment_history: whether to keep the alignments of all steps, in TensorArrays of the state.
      cell_input_fn: called with inputs and attention, returns the input of the cell. Default: their concatenation.
      output_attention: whether the output is the attention, or the output of the cell.
      initial_cell_state: state of the cell in `zero_state`.
      name: name of the cell.
      attention_layer: a layer in place of `attention_layer_size`, or a list of layers.
      attention_fn: replaces `_compute_attention`.
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[[Any, Any], Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
        attention_layer: Any = None,
        attention_fn: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(name=name)
        if not (callable(cell) and hasattr(cell, "state_size")):
            raise TypeError(f"cell must be an RNNCell, got {cell!r}")
        self._is_multi = isinstance(attention_mechanism, list | tuple)
        self._attention_mechanisms = tuple(attention_mechanism) if self._is_multi else (attention_mechanism,)
        for mechanism in self._attention_mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise TypeError(f"attention_mechanism must be an AttentionMechanism or a list of them: {mechanism!r}")
        self._cell = cell
        self._cell_input_fn = cell_input_fn or (lambda inputs, attention: tf.concat([inputs, attention], -1))
        self._attention_fn = attention_fn or compute_attention
        self._output_attention = output_attention
        self._alignment_history = alignment_history
        self._initial_cell_state = initial_cell_state
        self._attention_layers = self._make_layers(attention_layer_size, attention_layer)

    def _make_layers(self, sizes: Any, layers: Any) -> tuple[Any, ...] | None:
        """Sets the size of the attention; returns a layer per mechanism, or None."""
        mechanisms = self._attention_mechanisms
        if sizes is not None and layers is not None:
            raise ValueError(f"pass attention_layer_size or attention_layer, not both: {sizes} and {layers}")
        if sizes is None and layers is None:
            self._attention_layer_size = sum(int(one.values.shape[-1]) for one in mechanisms)
            return None
        given = sizes if layers is None else layers
        many = tuple(given) if isinstance(given, list | tuple) else (given,)
        if len(many) != len(mechanisms):
            what = "attention_layer_size" if layers is None else "attention_layer"
            raise ValueError(f"{what} needs one value per mechanism, got {len(many)} for {len(mechanisms)}")
        if layers is None:
            self._attention_layer_size = sum(many)
            return tuple(dense(size, "attention_layer", one.dtype) for size, one in zip(many, mechanisms, strict=True))
        shapes = (
            layer.compute_output_shape([None, self._cell.output_size + int(one.values.shape[-1])])
            for layer, one in zip(many, mechanisms, strict=True)
        )
        self._attention_layer_size = sum(int(tf.TensorShape(shape)[-1]) for shape in shapes)
        return many

    def _item_or_tuple(self, values: Any) -> Any:
        values = tuple(values)
        return values if self._is_multi else values[0]

    @property
    def output_size(self) -> Any:
        return self._attention_layer_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> Any:
        mechanisms = self._attention_mechanisms
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            time=tf.TensorShape([]),
            attention=self._attention_layer_size,
            alignments=self._item_or_tuple(one.alignments_size for one in mechanisms),
            attention_state=self._item_or_tuple(one.state_size for one in mechanisms),
            alignment_history=self._item_or_tuple(
                one.alignments_size if self._alignment_history else () for one in mechanisms
            ),
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """Returns the state before the first step. The memory must have the same batch size."""
        with tf.name_scope(type(self).__name__ + "ZeroState"):
            if self._initial_cell_state is None:
                cell_state = self._cell.zero_state(batch_size, dtype)
            else:
                cell_state = self._initial_cell_state
            with tf.control_dependencies(self._batch_size_checks(batch_size)):
                cell_state = tf.nest.map_structure(lambda one: tf.identity(one, "checked_cell_state"), cell_state)
            alignments = [one.initial_alignments(batch_size, dtype) for one in self._attention_mechanisms]
            attention = tf.zeros([batch_size, self._attention_layer_size], dtype)
            attention.set_shape([tf.get_static_value(batch_size), self._attention_layer_size])
            return AttentionWrapperState(
                cell_state=cell_state,
                time=tf.zeros([], tf.int32),
                attention=attention,
                alignments=self._item_or_tuple(alignments),
                attention_state=self._item_or_tuple(
                    one.initial_state(batch_size, dtype) for one in self._attention_mechanisms
                ),
                alignment_history=self._item_or_tuple(
                    tf.TensorArray(dtype, size=0, dynamic_size=True, element_shape=one.shape)
                    if self._alignment_history
                    else ()
                    for one in alignments
                ),
            )

    def _batch_size_checks(self, batch_size: Any) -> list[Any]:
        checks = [
            v1.assert_equal(
                batch_size,
                one.batch_size,
                message="the batch size of zero_state is not that of the memory of the attention mechanism. With a "
                "BeamSearchDecoder pass batch_size * beam_width, and the memory through tf.contrib.seq2seq.tile_batch",
            )
            for one in self._attention_mechanisms
        ]
        return [check for check in checks if check is not None]

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(f"state must be an AttentionWrapperState, as zero_state makes it, got {type(state)}")
        cell_output, cell_state = self._cell(self._cell_input_fn(inputs, state.attention), state.cell_state)
        before = state.attention_state if self._is_multi else (state.attention_state,)
        histories = state.alignment_history if self._is_multi else (state.alignment_history,)
        layers = self._attention_layers or (None,) * len(before)
        attentions, alignments, states, written = [], [], [], []
        for mechanism, one, history, layer in zip(self._attention_mechanisms, before, histories, layers, strict=True):
            attention, alignment, next_state = self._attention_fn(mechanism, cell_output, one, layer)
            attentions.append(attention)
            alignments.append(alignment)
            states.append(next_state)
            written.append(history.write(state.time, alignment) if self._alignment_history else ())
        attention = tf.concat(attentions, axis=1)
        next_state = AttentionWrapperState(
            time=state.time + 1,
            cell_state=cell_state,
            attention=attention,
            alignments=self._item_or_tuple(alignments),
            attention_state=self._item_or_tuple(states),
            alignment_history=self._item_or_tuple(written),
        )
        return (attention if self._output_attention else cell_output), next_state


def compute_attention(
    attention_mechanism: Any, cell_output: Any, attention_state: Any, attention_layer: Any
) -> tuple[Any, Any, Any]:
    """Returns the attention, the alignments and the next state of a mechanism."""
    result = attention_mechanism(cell_output, attention_state)
    # Mechanisms that were written for TensorFlow 1.4 return the alignments alone.
    alignments, next_state = result if isinstance(result, tuple) else (result, result)
    context = tf.einsum("bt,btd->bd", alignments, attention_mechanism.values)
    if attention_layer is None:
        return context, alignments, next_state
    return attention_layer(tf.concat([cell_output, context], axis=1)), alignments, next_state

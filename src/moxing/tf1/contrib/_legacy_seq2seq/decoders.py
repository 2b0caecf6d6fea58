"""Decoders over lists of tensors: plain, with embeddings, with attention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from moxing.tf1.contrib._cells.linear import linear

v1 = tf.compat.v1

#: Computes the next input from the previous output and the number of the step.
LoopFunction = Callable[[Any, int], Any]


def extract_argmax_and_embed(
    embedding: Any, output_projection: tuple[Any, Any] | None = None, update_embedding: bool = True
) -> LoopFunction:
    """Returns a loop function: the embedding of the symbol with the highest previous output.

    Args:
      embedding: [symbols, size].
      output_projection: weights and biases that make scores of symbols from outputs.
      update_embedding: whether gradients reach `embedding`.
    """

    def loop_function(previous: Any, _: int) -> Any:
        if output_projection is not None:
            previous = v1.nn.xw_plus_b(previous, *output_projection)
        embedded = v1.nn.embedding_lookup(embedding, tf.argmax(previous, axis=1))
        return embedded if update_embedding else tf.stop_gradient(embedded)

    return loop_function


def rnn_decoder(
    decoder_inputs: Iterable[Any],
    initial_state: Any,
    cell: Any,
    loop_function: LoopFunction | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Runs a cell over a list of inputs.

    Args:
      decoder_inputs: a [batch, size] per step.
      initial_state: state of the cell.
      cell: an RNNCell.
      loop_function: called with the previous output and the number of the step, returns the input of every step but
        the first.
      scope: name of the variable scope. Default: `rnn_decoder`.

    Returns:
      The outputs and the last state.
    """
    state: Any = initial_state
    outputs: list[Any] = []
    with v1.variable_scope(scope or "rnn_decoder"):
        for step, given in enumerate(decoder_inputs):
            if step:
                v1.get_variable_scope().reuse_variables()
            output, state = cell(_step_input(given, outputs, step, loop_function), state)
            outputs.append(output)
    return outputs, state


def embedding_rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    output_projection: tuple[Any, Any] | None = None,
    feed_previous: Any = False,
    update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Runs `rnn_decoder` over the embeddings of symbols.

    Args:
      decoder_inputs: an integer [batch] per step.
      initial_state: state of the cell.
      cell: an RNNCell.
      num_symbols: number of symbols.
      embedding_size: size of an embedding.
      output_projection: weights [output size, num_symbols] and biases [num_symbols], applied to a previous output.
      feed_previous: whether every input but the first is the best symbol of the previous output; bool, or a tensor.
      update_embedding_for_previous: whether these symbols train the embedding.
      scope: name of the variable scope. Default: `embedding_rnn_decoder`.
    """
    with v1.variable_scope(scope or "embedding_rnn_decoder") as current:
        check_projection(output_projection, num_symbols, current.dtype)
        embedding = v1.get_variable("embedding", [num_symbols, embedding_size])
        inputs = [v1.nn.embedding_lookup(embedding, one) for one in decoder_inputs]
        embed = extract_argmax_and_embed(embedding, output_projection, update_embedding_for_previous)
        return rnn_decoder(inputs, initial_state, cell, previous_or_given(feed_previous, embed, inputs))


def attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: LoopFunction | None = None,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """Runs a cell that attends to the states of an encoder (https://arxiv.org/abs/1412.7449).

    Args:
      decoder_inputs: a [batch, size] per step.
      initial_state: state of the cell.
      attention_states: [batch, time, size], what to attend to.
      cell: an RNNCell.
      output_size: size of an output. Default: that of the cell.
      num_heads: number of attention vectors.
      loop_function: as in `rnn_decoder`.
      dtype: type of the variables and of the first attention.
      scope: name of the variable scope. Default: `attention_decoder`.
      initial_state_attention: whether the first attention is that of the initial state, or zeros.

    Returns:
      The outputs and the last state.
    """
    if not decoder_inputs:
        raise ValueError("decoder_inputs must have at least one step, got none")
    if num_heads < 1:
        raise ValueError(f"num_heads must be at least 1, got {num_heads}")
    if attention_states.shape.as_list()[2] is None:
        raise ValueError(f"attention_states must have a static last dimension, got {attention_states.shape}")
    size = int(attention_states.shape[2])
    with v1.variable_scope(scope or "attention_decoder", dtype=dtype) as current:
        attend = _attention_heads(attention_states, num_heads)
        if initial_state_attention:
            attention = attend(initial_state)
        else:
            attention = [tf.zeros([tf.shape(decoder_inputs[0])[0], size], current.dtype) for _ in range(num_heads)]
        state: Any = initial_state
        outputs: list[Any] = []
        for step, given in enumerate(decoder_inputs):
            if step:
                v1.get_variable_scope().reuse_variables()
            inputs = _step_input(given, outputs, step, loop_function)
            if inputs.shape.rank != 2 or inputs.shape.as_list()[1] is None:
                raise ValueError(f"decoder_inputs must be [batch, n] with a static n, step {step} is {inputs.shape}")
            cell_output, state = cell(linear([inputs, *attention], inputs.shape[1], True), state)
            with v1.variable_scope(v1.get_variable_scope(), reuse=True if initial_state_attention else None):
                attention = attend(state)
            with v1.variable_scope("AttnOutputProjection"):
                outputs.append(linear([cell_output, *attention], output_size or cell.output_size, True))
    return outputs, state


def embedding_attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: tuple[Any, Any] | None = None,
    feed_previous: Any = False,
    update_embedding_for_previous: bool = True,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """Runs `attention_decoder` over the embeddings of symbols; see there and at `embedding_rnn_decoder`."""
    with v1.variable_scope(scope or "embedding_attention_decoder", dtype=dtype) as current:
        check_projection(output_projection, num_symbols, current.dtype)
        embedding = v1.get_variable("embedding", [num_symbols, embedding_size])
        inputs = [v1.nn.embedding_lookup(embedding, one) for one in decoder_inputs]
        embed = extract_argmax_and_embed(embedding, output_projection, update_embedding_for_previous)
        return attention_decoder(
            inputs,
            initial_state,
            attention_states,
            cell,
            output_size=output_size,
            num_heads=num_heads,
            loop_function=previous_or_given(feed_previous, embed, inputs),
            initial_state_attention=initial_state_attention,
        )


def previous_or_given(feed_previous: Any, embed: LoopFunction, inputs: Sequence[Any]) -> LoopFunction | None:
    """Returns the loop function for `feed_previous`: None if it is False; a tensor decides when the graph runs."""
    if isinstance(feed_previous, bool):
        return embed if feed_previous else None
    # A choice per step, instead of TensorFlow 1's whole decoder in both branches: no variable is made in a branch.
    return lambda previous, step: tf.cond(feed_previous, lambda: embed(previous, step), lambda: inputs[step])


def check_projection(output_projection: tuple[Any, Any] | None, num_symbols: int, dtype: Any) -> None:
    """Raises an error if the weights or biases are not for this number of symbols."""
    if output_projection is None:
        return
    for part, value, shape in zip(
        ("weights", "biases"), output_projection, ([None, num_symbols], [num_symbols]), strict=True
    ):
        found = tf.convert_to_tensor(value, dtype=dtype).shape
        if not found.is_compatible_with(shape):
            raise ValueError(f"output_projection: the {part} must have the shape {shape}, got {found}")


def _step_input(given: Any, outputs: list[Any], step: int, loop_function: LoopFunction | None) -> Any:
    if loop_function is None or not outputs:
        return given
    with v1.variable_scope("loop_function", reuse=True):
        return loop_function(outputs[-1], step)


def _attention_heads(states: Any, num_heads: int) -> Callable[[Any], list[Any]]:
    """Creates the variables of the heads; returns a function from a state of the cell to an attention per head."""
    size = int(states.shape[2])
    keys, vectors = [], []
    for head in range(num_heads):
        kernel = v1.get_variable(f"AttnW_{head}", [1, 1, size, size])
        keys.append(tf.einsum("bta,ah->bth", states, kernel[0, 0]))
        vectors.append(v1.get_variable(f"AttnV_{head}", [size]))

    def attend(state: Any) -> list[Any]:
        query = tf.concat(tf.nest.flatten(state), axis=1)
        attention = []
        for head in range(num_heads):
            with v1.variable_scope(f"Attention_{head}"):
                hidden = linear(query, size, True)
            weights = tf.nn.softmax(tf.reduce_sum(vectors[head] * tf.tanh(keys[head] + hidden[:, None]), axis=2))
            attention.append(tf.einsum("bt,bta->ba", weights, states))
        return attention

    return attend

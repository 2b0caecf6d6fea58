"""Encoders with decoders, over lists of tensors."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from moxing.tf1.contrib._cells.wrappers import EmbeddingWrapper, OutputProjectionWrapper
from moxing.tf1.contrib._legacy_seq2seq import decoders

v1 = tf.compat.v1

#: Attributes of layers that hold the scope of their variables.
_SCOPES = ("_always_reuse_variable_scope", "_current_scope", "_scope", "rnncell_scope")


def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: Any, dtype: Any = tf.float32, scope: Any = None
) -> tuple[list[Any], Any]:
    """Encodes with a copy of a cell, decodes with the cell from the encoder's last state.

    Args:
      encoder_inputs: a [batch, size] per step.
      decoder_inputs: a [batch, size] per step.
      cell: an RNNCell.
      dtype: type of the initial state.
      scope: name of the variable scope. Default: `basic_rnn_seq2seq`.

    Returns:
      The outputs of the decoder and its last state.
    """
    with v1.variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = v1.nn.static_rnn(unbuilt_copy(cell), encoder_inputs, dtype=dtype)
        return decoders.rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    loop_function: decoders.LoopFunction | None = None,
    dtype: Any = tf.float32,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Encodes and decodes with the same cell and variables; see `basic_rnn_seq2seq` and `rnn_decoder`."""
    with v1.variable_scope("combined_tied_rnn_seq2seq"):
        scope = scope or "tied_rnn_seq2seq"
        _, state = v1.nn.static_rnn(cell, encoder_inputs, dtype=dtype, scope=scope)
        v1.get_variable_scope().reuse_variables()
        return decoders.rnn_decoder(decoder_inputs, state, cell, loop_function, scope)


def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: tuple[Any, Any] | None = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Embeds symbols, encodes and decodes them.

    Args:
      encoder_inputs: an integer [batch] per step.
      decoder_inputs: an integer [batch] per step.
      cell: an RNNCell; the encoder has a copy.
      num_encoder_symbols: number of symbols of the encoder.
      num_decoder_symbols: number of symbols of the decoder.
      embedding_size: size of an embedding.
      output_projection: as in `embedding_rnn_decoder`. Without it, outputs are projected to `num_decoder_symbols`.
      feed_previous: as in `embedding_rnn_decoder`.
      dtype: type of the variables and states.
      scope: name of the variable scope. Default: `embedding_rnn_seq2seq`.

    Returns:
      The outputs of the decoder and its last state.
    """
    with v1.variable_scope(scope or "embedding_rnn_seq2seq", dtype=dtype) as current:
        encoder = EmbeddingWrapper(unbuilt_copy(cell), num_encoder_symbols, embedding_size)
        _, state = v1.nn.static_rnn(encoder, encoder_inputs, dtype=current.dtype)
        return decoders.embedding_rnn_decoder(
            decoder_inputs,
            state,
            cell if output_projection else OutputProjectionWrapper(cell, num_decoder_symbols),
            num_decoder_symbols,
            embedding_size,
            output_projection,
            feed_previous,
            update_embedding_for_previous=isinstance(feed_previous, bool),
        )


def embedding_tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_decoder_symbols: int | None = None,
    output_projection: tuple[Any, Any] | None = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """As `embedding_rnn_seq2seq`, with one embedding and one cell for both sides."""
    with v1.variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as current:
        decoders.check_projection(output_projection, num_symbols, current.dtype)
        embedding = v1.get_variable("embedding", [num_symbols, embedding_size])
        encoded = [v1.nn.embedding_lookup(embedding, one) for one in encoder_inputs]
        decoded = [v1.nn.embedding_lookup(embedding, one) for one in decoder_inputs]
        embed = decoders.extract_argmax_and_embed(embedding, output_projection, isinstance(feed_previous, bool))
        return tied_rnn_seq2seq(
            encoded,
            decoded,
            cell if output_projection else OutputProjectionWrapper(cell, num_decoder_symbols or num_symbols),
            decoders.previous_or_given(feed_previous, embed, decoded),
            current.dtype,
        )


def embedding_attention_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    encoder_cell: Any = None,
    num_heads: int = 1,
    output_projection: tuple[Any, Any] | None = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """As `embedding_rnn_seq2seq`, with a decoder that attends to the outputs of the encoder.

    `encoder_cell` is the cell of the encoder, by default a copy of `cell`. For `num_heads` and
    `initial_state_attention` see `attention_decoder`.
    """
    with v1.variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as current:
        encoder = EmbeddingWrapper(encoder_cell or unbuilt_copy(cell), num_encoder_symbols, embedding_size)
        outputs, state = v1.nn.static_rnn(encoder, encoder_inputs, dtype=current.dtype)
        projected = output_projection is not None
        return decoders.embedding_attention_decoder(
            decoder_inputs,
            state,
            tf.stack(outputs, axis=1),
            cell if projected else OutputProjectionWrapper(cell, num_decoder_symbols),
            num_decoder_symbols,
            embedding_size,
            num_heads=num_heads,
            output_size=None if projected else num_decoder_symbols,
            output_projection=output_projection,
            feed_previous=feed_previous,
            update_embedding_for_previous=isinstance(feed_previous, bool),
            initial_state_attention=initial_state_attention,
        )


def one2many_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs_dict: Mapping[str, Sequence[Any]],
    enc_cell: Any,
    dec_cells_dict: Mapping[str, Any],
    num_encoder_symbols: int,
    num_decoder_symbols_dict: Mapping[str, int],
    embedding_size: int,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """One encoder and a decoder per task; see `embedding_rnn_seq2seq`.

    Returns:
      The outputs and the last state of each decoder, by its name.
    """
    if set(dec_cells_dict) != set(decoder_inputs_dict):
        raise ValueError(
            "dec_cells_dict and decoder_inputs_dict must have the same keys, "
            f"got {sorted(dec_cells_dict)} and {sorted(decoder_inputs_dict)}"
        )
    outputs, states = {}, {}
    with v1.variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as current:
        encoder = EmbeddingWrapper(enc_cell, num_encoder_symbols, embedding_size)
        _, state = v1.nn.static_rnn(encoder, encoder_inputs, dtype=current.dtype)
        for name, inputs in decoder_inputs_dict.items():
            symbols = num_decoder_symbols_dict[name]
            with v1.variable_scope(f"one2many_decoder_{name}"):
                outputs[name], states[name] = decoders.embedding_rnn_decoder(
                    inputs,
                    state,
                    OutputProjectionWrapper(dec_cells_dict[name], symbols),
                    symbols,
                    embedding_size,
                    feed_previous=feed_previous,
                )
    return outputs, states


def unbuilt_copy(cell: Any) -> Any:
    """Returns a copy of a cell that has no variables yet.

    A model with buckets is built once per bucket: a plain copy of the cell would have the variables that the cell got
    in the first one, those of the decoder, and the encoder would use them.
    """
    scopes = [layer.__dict__[name] for layer in _cells_in(cell) for name in _SCOPES if name in layer.__dict__]
    # What cannot be copied is shared until it is forgotten below.
    shared = [v1.get_default_graph(), *v1.global_variables(), *scopes]
    fresh = copy.deepcopy(cell, {id(one): one for one in shared})
    for layer in _cells_in(fresh):
        layer.built = False
        for name in _SCOPES:
            layer.__dict__.pop(name, None)
        layer.__dict__.update(_scope=None, _trainable_weights=[], _non_trainable_weights=[])
    return fresh


def _cells_in(cell: Any) -> list[Any]:
    inner = [*getattr(cell, "_cells", []), *filter(None, [getattr(cell, "_cell", None), getattr(cell, "cell", None)])]
    found = {id(one): one for child in inner for one in _cells_in(child)}
    return [cell, *found.values()]

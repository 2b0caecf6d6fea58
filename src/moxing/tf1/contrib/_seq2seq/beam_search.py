"""Beam search."""

from __future__ import annotations

import collections
from typing import Any

import tensorflow as tf

from moxing.tf1.contrib._seq2seq.beams import gather_tree, gather_tree_from_array, tile_batch
from moxing.tf1.contrib._seq2seq.decoder import Decoder, check_output_layer
from moxing.tf1.contrib._seq2seq.helpers import embedding_function, keep_shapes

v1 = tf.compat.v1

BeamSearchDecoderState = collections.namedtuple(
    "BeamSearchDecoderState", ("cell_state", "log_probs", "finished", "lengths")
)
BeamSearchDecoderOutput = collections.namedtuple("BeamSearchDecoderOutput", ("scores", "predicted_ids", "parent_ids"))
FinalBeamSearchDecoderOutput = collections.namedtuple(
    "FinalBeamSearchDecoderOutput", ("predicted_ids", "beam_search_decoder_output")
)


class BeamSearchDecoder(Decoder):
    """Keeps the `beam_width` sequences with the highest scores.

    The score is the log-probability divided by ((5 + length) / 6) ** length_penalty_weight
    (https://arxiv.org/abs/1609.08144).

    Args:
      cell: an RNNCell.
      embedding: [symbols, size], or a function from ids to embeddings.
      start_tokens: int32 [batch].
      end_token: int32 scalar.
      initial_state: state of the cell for batch_size * beam_width rows, see `tile_batch`.
      beam_width: number of beams.
      output_layer: a layer that is applied to the outputs of the cell.
      length_penalty_weight: 0 for no penalty.
      reorder_tensor_arrays: whether TensorArrays of the state, such as `alignment_history`, are reordered to follow
        the beams at the end; they become tensors then.
    """

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: float = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        if not (callable(cell) and hasattr(cell, "output_size")):
            raise TypeError(f"cell must be an RNNCell, got {cell!r}")
        check_output_layer(output_layer)
        self._cell = cell
        self._output_layer = output_layer
        self._embedding_fn = embedding_function(embedding)
        self._start_tokens = tf.convert_to_tensor(start_tokens, dtype=tf.int32, name="start_tokens")
        self._end_token = tf.convert_to_tensor(end_token, dtype=tf.int32, name="end_token")
        if self._start_tokens.shape.rank != 1:
            raise ValueError(f"start_tokens must be [batch], got the shape {self._start_tokens.shape}")
        if self._end_token.shape.rank != 0:
            raise ValueError(f"end_token must be a scalar, got the shape {self._end_token.shape}")
        self._batch_size = tf.size(self._start_tokens)
        self._beam_width = beam_width
        self._length_penalty_weight = length_penalty_weight
        self._reorder_tensor_arrays = reorder_tensor_arrays
        self._initial_cell_state = tf.nest.map_structure(self._split, initial_state)
        tokens = tf.reshape(tile_batch(self._start_tokens, beam_width), [self._batch_size, beam_width])
        tokens.set_shape([self._start_tokens.shape[0], beam_width])
        self._start_inputs = self._embedding_fn(tokens)

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        return True

    @property
    def output_size(self) -> Any:
        beams = tf.TensorShape([self._beam_width])
        return BeamSearchDecoderOutput(scores=beams, predicted_ids=beams, parent_ids=beams)

    @property
    def output_dtype(self) -> Any:
        dtype = tf.nest.flatten(self._initial_cell_state)[0].dtype
        return BeamSearchDecoderOutput(scores=dtype, predicted_ids=tf.int32, parent_ids=tf.int32)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        dtype = tf.nest.flatten(self._initial_cell_state)[0].dtype
        first = tf.zeros_like(self._start_tokens)
        # All beams are equal in the beginning: only the first takes part.
        finished = tf.one_hot(first, self._beam_width, on_value=False, off_value=True, dtype=tf.bool)
        log_probs = tf.one_hot(first, self._beam_width, on_value=0.0, off_value=-float("inf"), dtype=dtype)
        state = BeamSearchDecoderState(
            cell_state=self._initial_cell_state,
            log_probs=log_probs,
            finished=finished,
            lengths=tf.zeros_like(finished, dtype=tf.int64),
        )
        return finished, self._start_inputs, state

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        with v1.name_scope(name, "BeamSearchDecoderStep"):
            cell_state = tf.nest.map_structure(self._merge, state.cell_state)
            outputs, cell_state = self._cell(tf.nest.map_structure(self._merge, inputs), cell_state)
            outputs = tf.nest.map_structure(self._split, outputs)
            cell_state = tf.nest.map_structure(self._split, cell_state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            outputs, state = self._choose(outputs, state._replace(cell_state=cell_state))
            inputs = tf.cond(
                tf.reduce_all(state.finished),
                lambda: self._start_inputs,
                lambda: self._embedding_fn(outputs.predicted_ids),
            )
        return outputs, state, keep_shapes(inputs, self._start_inputs), state.finished

    def _choose(self, logits: Any, state: BeamSearchDecoderState) -> tuple[Any, BeamSearchDecoderState]:
        """Returns the best continuations of all beams, and the state that belongs to them."""
        symbols = logits.shape[-1] or tf.shape(logits)[-1]
        is_end = tf.one_hot(self._end_token, symbols, on_value=True, off_value=False, dtype=tf.bool)
        # A finished beam goes on with the end token, at no cost.
        only_end = tf.where(is_end, tf.zeros([], logits.dtype), logits.dtype.min)
        steps = tf.where(state.finished[:, :, None], only_end, tf.nn.log_softmax(logits))
        totals = state.log_probs[:, :, None] + steps
        longer = tf.logical_not(tf.logical_or(state.finished[:, :, None], is_end))
        lengths = state.lengths[:, :, None] + tf.cast(longer, tf.int64)
        scores = totals / self._length_penalty(lengths, totals.dtype)
        best_scores, chosen = tf.nn.top_k(self._flat(scores, symbols), k=self._beam_width)
        parents, ids = chosen // symbols, chosen % symbols
        was_finished = _of_beams(state.finished, parents)
        new_state = BeamSearchDecoderState(
            cell_state=tf.nest.map_structure(lambda one: self._follow(one, parents), state.cell_state),
            log_probs=tf.gather(self._flat(totals, symbols), chosen, batch_dims=1),
            finished=tf.logical_or(was_finished, tf.equal(ids, self._end_token)),
            lengths=_of_beams(state.lengths, parents) + tf.cast(tf.logical_not(was_finished), tf.int64),
        )
        return BeamSearchDecoderOutput(scores=best_scores, predicted_ids=ids, parent_ids=parents), new_state

    def _length_penalty(self, lengths: Any, dtype: Any) -> Any:
        if isinstance(self._length_penalty_weight, int | float) and self._length_penalty_weight == 0:
            return tf.ones([], dtype)
        return tf.pow((5 + tf.cast(lengths, dtype)) / 6, tf.cast(self._length_penalty_weight, dtype))

    def _flat(self, values: Any, symbols: Any) -> Any:
        return tf.reshape(values, [-1, self._beam_width * symbols])

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        longest = tf.cast(tf.reduce_max(final_state.lengths, axis=1), tf.int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end_token)
        if self._reorder_tensor_arrays:
            cell_state = tf.nest.map_structure(
                lambda one: (
                    gather_tree_from_array(one.stack(), outputs.parent_ids, final_state.lengths)
                    if isinstance(one, tf.TensorArray)
                    else one
                ),
                final_state.cell_state,
            )
            final_state = final_state._replace(cell_state=cell_state)
        return FinalBeamSearchDecoderOutput(predicted_ids=ids, beam_search_decoder_output=outputs), final_state

    def _split(self, tensor: Any) -> Any:
        """From [batch * beams, ...] to [batch, beams, ...]; scalars and TensorArrays stay as they are."""
        if isinstance(tensor, tf.TensorArray) or tensor.shape.rank == 0:
            return tensor
        split = tf.reshape(tensor, tf.concat([[self._batch_size, self._beam_width], tf.shape(tensor)[1:]], axis=0))
        split.set_shape([self._start_tokens.shape[0], self._beam_width, *tensor.shape[1:]])
        return split

    def _merge(self, tensor: Any) -> Any:
        """From [batch, beams, ...] to [batch * beams, ...]."""
        if isinstance(tensor, tf.TensorArray) or tensor.shape.rank == 0:
            return tensor
        merged = tf.reshape(tensor, tf.concat([[-1], tf.shape(tensor)[2:]], axis=0))
        batch = tensor.shape[0]
        merged.set_shape([None if batch is None else batch * self._beam_width, *tensor.shape[2:]])
        return merged

    def _follow(self, tensor: Any, parents: Any) -> Any:
        if isinstance(tensor, tf.TensorArray) or tensor.shape.rank == 0:
            return tensor
        return _of_beams(tensor, parents)


def _of_beams(tensor: Any, parents: Any) -> Any:
    """Returns the rows [batch, beams, ...] of the given beams."""
    chosen = tf.gather(tensor, parents, axis=1, batch_dims=1)
    chosen.set_shape(tensor.shape)
    return chosen

"""Decoders, and the loop that runs them."""

from __future__ import annotations

import abc
import collections
import contextlib
from typing import Any

import tensorflow as tf

from moxing.tf1.contrib._cells import scopes

v1 = tf.compat.v1

scopes.repair()

BasicDecoderOutput = collections.namedtuple("BasicDecoderOutput", ("rnn_output", "sample_id"))


class Decoder(abc.ABC):
    """One step of decoding, for `dynamic_decode`."""

    @property
    @abc.abstractmethod
    def batch_size(self) -> Any:
        """Scalar integer tensor."""

    @property
    @abc.abstractmethod
    def output_size(self) -> Any:
        """Structure of the sizes of the outputs, without the batch."""

    @property
    @abc.abstractmethod
    def output_dtype(self) -> Any:
        """Structure of the types of the outputs."""

    @abc.abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """Returns which sequences are finished, the first inputs, and the first state."""

    @abc.abstractmethod
    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """Returns outputs, next state, next inputs, and which sequences are finished."""

    @property
    def tracks_own_finished(self) -> bool:
        """Whether a finished sequence may become unfinished, as beams do when they are exchanged."""
        return False

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Returns outputs and state after the last step."""
        raise NotImplementedError


class BasicDecoder(Decoder):
    """Runs a cell on what a helper gives it.

    Args:
      cell: an RNNCell.
      helper: a Helper.
      initial_state: state of the cell.
      output_layer: a layer that is applied to the outputs of the cell, before they are sampled.
    """

    def __init__(self, cell: Any, helper: Any, initial_state: Any, output_layer: Any = None) -> None:
        if not (callable(cell) and hasattr(cell, "output_size")):
            raise TypeError(f"cell must be an RNNCell, got {cell!r}")
        check_output_layer(output_layer)
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self) -> Any:
        return self._helper.batch_size

    @property
    def output_size(self) -> Any:
        size = output_size(self._cell.output_size, self._output_layer)
        return BasicDecoderOutput(size, self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> Any:
        dtype = tf.nest.flatten(self._initial_state)[0].dtype
        types = tf.nest.map_structure(lambda _: dtype, self.output_size.rnn_output)
        return BasicDecoderOutput(types, self._helper.sample_ids_dtype)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        finished, inputs = self._helper.initialize()
        return finished, inputs, self._initial_state

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        with v1.name_scope(name, "BasicDecoderStep"):
            outputs, state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            samples = self._helper.sample(time=time, outputs=outputs, state=state)
            finished, inputs, state = self._helper.next_inputs(
                time=time, outputs=outputs, state=state, sample_ids=samples
            )
        return BasicDecoderOutput(outputs, samples), state, inputs, finished


def dynamic_decode(
    decoder: Any,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Runs a decoder until all sequences are finished.

    Args:
      decoder: a Decoder.
      output_time_major: whether outputs are [time, batch, ...], or [batch, time, ...].
      impute_finished: whether the outputs of finished sequences are zeros and their states stay as they are.
      maximum_iterations: the most steps, integer scalar. Default: no limit.
      parallel_iterations: as in `tf.while_loop`.
      swap_memory: as in `tf.while_loop`.
      scope: name of the variable scope. Default: `decoder`.

    Returns:
      The outputs, the last state, and the lengths of the sequences.
    """
    if not hasattr(decoder, "step"):
        raise TypeError(f"decoder must be a Decoder, got {decoder!r}")
    with v1.variable_scope(scope, "decoder"):
        finished, inputs, state = decoder.initialize()
        types = decoder.output_dtype
        zeros = tf.nest.map_structure(
            lambda size, dtype: _zeros(size, dtype, decoder.batch_size), decoder.output_size, types
        )
        arrays = tf.nest.map_structure(
            lambda zero, dtype: tf.TensorArray(dtype, size=0, dynamic_size=True, element_shape=zero.shape), zeros, types
        )
        limit = None
        if maximum_iterations is not None:
            limit = tf.convert_to_tensor(maximum_iterations, dtype=tf.int32, name="maximum_iterations")
            if limit.shape.rank != 0:
                raise ValueError(f"maximum_iterations must be a scalar, got the shape {limit.shape}")
            finished = tf.logical_or(finished, limit <= 0)
        lengths = tf.zeros_like(finished, dtype=tf.int32)

        def unfinished(time: Any, arrays: Any, state: Any, inputs: Any, finished: Any, lengths: Any) -> Any:
            return tf.logical_not(tf.reduce_all(finished))

        def body(time: Any, arrays: Any, state: Any, inputs: Any, finished: Any, lengths: Any) -> Any:
            outputs, next_state, next_inputs, now_finished = decoder.step(time, inputs, state)
            if not decoder.tracks_own_finished:
                now_finished = tf.logical_or(now_finished, finished)
            lengths = tf.where(finished, lengths, tf.fill(tf.shape(lengths), time + 1))
            if impute_finished:
                outputs = tf.nest.map_structure(lambda new, zero: _select(finished, zero, new), outputs, zeros)
                next_state = tf.nest.map_structure(lambda old, new: _select(finished, old, new), state, next_state)
            arrays = tf.nest.map_structure(lambda array, one: array.write(time, one), arrays, outputs)
            return (
                time + 1,
                arrays,
                _with_shapes("state", next_state, state),
                _with_shapes("inputs", next_inputs, inputs),
                _with_shapes("finished", now_finished, finished),
                _with_shapes("lengths", lengths, lengths),
            )

        _, arrays, state, _, _, lengths = v1.while_loop(
            unfinished,
            body,
            (tf.constant(0), arrays, state, inputs, finished, lengths),
            parallel_iterations=parallel_iterations,
            maximum_iterations=limit,
            swap_memory=swap_memory,
        )
        outputs = tf.nest.map_structure(lambda array: array.stack(), arrays)
        with contextlib.suppress(NotImplementedError):
            outputs, state = decoder.finalize(outputs, state, lengths)
        if not output_time_major:
            outputs = tf.nest.map_structure(_swap_time_and_batch, outputs)
    return outputs, state, lengths


def output_size(size: Any, layer: Any) -> Any:
    """Returns the size of the outputs of a cell after a layer, which may be None."""
    if layer is None:
        return size
    shapes = tf.nest.map_structure(lambda one: tf.TensorShape([None]).concatenate(one), size)
    return tf.nest.map_structure(
        lambda one: tf.TensorShape(layer.compute_output_shape(one))[1:],
        shapes,
    )


def check_output_layer(layer: Any) -> None:
    """Raises an error unless it is a layer, or None."""
    if layer is not None and not (callable(layer) and hasattr(layer, "compute_output_shape")):
        raise TypeError(f"output_layer must be a layer such as tf.layers.Dense, got {layer!r}")


def _zeros(size: Any, dtype: Any, batch_size: Any) -> Any:
    inner = tf.TensorShape(size)
    zeros = tf.zeros([batch_size, *inner.as_list()], dtype)
    zeros.set_shape(tf.TensorShape([tf.get_static_value(batch_size)]).concatenate(inner))
    return zeros


def _select(finished: Any, old: Any, new: Any) -> Any:
    """Returns old values for finished sequences; TensorArrays and scalars, such as the time, are always new."""
    if isinstance(old, tf.TensorArray) or new.shape.rank == 0:
        return new
    extra = new.shape.rank - finished.shape.rank
    return tf.where(tf.reshape(finished, tf.concat([tf.shape(finished), [1] * extra], axis=0)), old, new)


def _with_shapes(what: str, values: Any, like: Any) -> Any:
    """Returns values with the static shapes of the loop variables they replace; what a step computes may lose them."""

    def one(value: Any, other: Any) -> Any:
        if isinstance(value, tf.TensorArray):
            return value
        if not value.shape.is_compatible_with(other.shape):
            raise ValueError(
                f"a step of the decoder must keep the shapes of its {what}: {other.shape} became {value.shape}"
            )
        return tf.ensure_shape(value, other.shape)

    return tf.nest.map_structure(one, values, like)


def _swap_time_and_batch(tensor: Any) -> Any:
    if tensor.shape.rank is None or tensor.shape.rank < 2:
        return tensor
    return tf.transpose(tensor, [1, 0, *range(2, tensor.shape.rank)])

"""What the inputs of a decoder are: given ones (training), or its own outputs (inference)."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1


class Helper(abc.ABC):
    """Samples from the outputs of a decoder, and computes its next inputs."""

    @property
    @abc.abstractmethod
    def batch_size(self) -> Any:
        """Scalar integer tensor."""

    @property
    @abc.abstractmethod
    def sample_ids_shape(self) -> Any:
        """Shape of a sample, without the batch."""

    @property
    @abc.abstractmethod
    def sample_ids_dtype(self) -> Any:
        """Type of a sample."""

    @abc.abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Returns which sequences are finished, [batch], and the first inputs."""

    @abc.abstractmethod
    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Returns samples of the outputs."""

    @abc.abstractmethod
    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None) -> Any:
        """Returns which sequences are finished, the next inputs and the next state."""


class CustomHelper(Helper):
    """A helper made of functions with the arguments of the methods; samples are int32 scalars by default."""

    def __init__(
        self,
        initialize_fn: Callable[..., Any],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any],
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        self._initialize_fn = initialize_fn
        self._sample_fn = sample_fn
        self._next_inputs_fn = next_inputs_fn
        self._sample_ids_shape = tf.TensorShape(sample_ids_shape or [])
        self._sample_ids_dtype = sample_ids_dtype or tf.int32
        self._batch_size: Any = None

    @property
    def batch_size(self) -> Any:
        if self._batch_size is None:
            raise ValueError("batch_size is known after initialize() of the CustomHelper")
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        return self._sample_ids_shape

    @property
    def sample_ids_dtype(self) -> Any:
        return self._sample_ids_dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        finished, inputs = self._initialize_fn()
        if self._batch_size is None:
            self._batch_size = tf.size(finished)
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None) -> Any:
        return self._next_inputs_fn(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class TrainingHelper(Helper):
    """Reads the inputs from a tensor; a sample is the index of the highest output.

    Args:
      inputs: [batch, time, ...], or a structure of such tensors.
      sequence_length: integer [batch].
      time_major: whether inputs are [time, batch, ...].
      name: name of the operations.
    """

    def __init__(self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None) -> None:
        with v1.name_scope(name, "TrainingHelper", [inputs, sequence_length]):
            inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)
            self._inputs = inputs
            if not time_major:
                inputs = tf.nest.map_structure(_swap_batch_and_time, inputs)
            self._input_tas = tf.nest.map_structure(_unstack, inputs)
            self._sequence_length = tf.convert_to_tensor(sequence_length, name="sequence_length")
            if self._sequence_length.shape.rank != 1:
                raise ValueError(f"sequence_length must be [batch], got the shape {self._sequence_length.shape}")
            self._zero_inputs = tf.nest.map_structure(lambda one: tf.zeros_like(one[0]), inputs)
            self._batch_size = tf.size(self._sequence_length)

    @property
    def inputs(self) -> Any:
        """The inputs as they were given."""
        return self._inputs

    @property
    def sequence_length(self) -> Any:
        """The lengths of the sequences, [batch]."""
        return self._sequence_length

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        return tf.TensorShape([])

    @property
    def sample_ids_dtype(self) -> Any:
        return tf.int32

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return self._at(tf.constant(0))

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        return tf.argmax(outputs, axis=-1, output_type=tf.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        finished, inputs = self._at(time + 1)
        return finished, inputs, state

    def _at(self, time: Any) -> tuple[Any, Any]:
        finished = tf.cast(time, self._sequence_length.dtype) >= self._sequence_length
        inputs = tf.cond(
            tf.reduce_all(finished),
            lambda: self._zero_inputs,
            lambda: tf.nest.map_structure(lambda ta: ta.read(time), self._input_tas),
        )
        return finished, keep_shapes(inputs, self._zero_inputs)


class GreedyEmbeddingHelper(Helper):
    """Feeds back the embedding of the index of the highest output.

    Args:
      embedding: [symbols, size], or a function from ids to embeddings.
      start_tokens: int32 [batch].
      end_token: int32 scalar: a sequence that has it is finished.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embedding_fn = embedding_function(embedding)
        self._start_tokens = tf.convert_to_tensor(start_tokens, dtype=tf.int32, name="start_tokens")
        self._end_token = tf.convert_to_tensor(end_token, dtype=tf.int32, name="end_token")
        if self._start_tokens.shape.rank != 1:
            raise ValueError(f"start_tokens must be [batch], got the shape {self._start_tokens.shape}")
        if self._end_token.shape.rank != 0:
            raise ValueError(f"end_token must be a scalar, got the shape {self._end_token.shape}")
        self._batch_size = tf.size(self._start_tokens)
        self._start_inputs = self._embedding_fn(self._start_tokens)

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        return tf.TensorShape([])

    @property
    def sample_ids_dtype(self) -> Any:
        return tf.int32

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return tf.zeros_like(self._start_tokens, dtype=tf.bool), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return tf.argmax(outputs, axis=-1, output_type=tf.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        finished = tf.equal(sample_ids, self._end_token)
        # After the end the inputs do not matter; samples need not be valid ids there.
        inputs = tf.cond(tf.reduce_all(finished), lambda: self._start_inputs, lambda: self._embedding_fn(sample_ids))
        return finished, keep_shapes(inputs, self._start_inputs), state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Feeds back the embedding of a random index, with the outputs as logits.

    Args:
      embedding: [symbols, size], or a function from ids to embeddings.
      start_tokens: int32 [batch].
      end_token: int32 scalar.
      softmax_temperature: the logits are divided by it.
      seed: seed of the samples.
    """

    def __init__(
        self,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._softmax_temperature = softmax_temperature
        self._seed = seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        logits = outputs if self._softmax_temperature is None else outputs / self._softmax_temperature
        return categorical(logits, self._seed)


class InferenceHelper(Helper):
    """Feeds back samples that a function makes.

    Args:
      sample_fn: from outputs to samples.
      sample_shape: shape of a sample, without the batch.
      sample_dtype: type of a sample.
      start_inputs: the first inputs.
      end_fn: from samples to which sequences are finished, bool [batch].
      next_inputs_fn: from samples to inputs. Default: the samples.
    """

    def __init__(
        self,
        sample_fn: Callable[[Any], Any],
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self._sample_fn = sample_fn
        self._sample_shape = tf.TensorShape(sample_shape)
        self._sample_dtype = sample_dtype
        self._start_inputs = tf.convert_to_tensor(start_inputs, name="start_inputs")
        self._end_fn = end_fn
        self._next_inputs_fn = next_inputs_fn or (lambda samples: samples)
        self._batch_size = tf.shape(self._start_inputs)[0]

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        return self._sample_shape

    @property
    def sample_ids_dtype(self) -> Any:
        return self._sample_dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return tf.zeros([self._batch_size], tf.bool), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return self._sample_fn(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        return self._end_fn(sample_ids), self._next_inputs_fn(sample_ids), state


def embedding_function(embedding: Any) -> Callable[[Any], Any]:
    """Returns the function from ids to embeddings."""
    return embedding if callable(embedding) else lambda ids: v1.nn.embedding_lookup(embedding, ids)


def categorical(logits: Any, seed: int | None) -> Any:
    """Returns a random index per row, int32 [batch], with logits [batch, n]."""
    return v1.random.categorical(logits, 1, dtype=tf.int32, seed=seed)[:, 0]


def keep_shapes(values: Any, like: Any) -> Any:
    """Returns values with the static shapes of others, which the branches of a cond may lose."""

    def one(value: Any, other: Any) -> Any:
        value.set_shape(other.shape)
        return value

    return tf.nest.map_structure(one, values, like)


def _swap_batch_and_time(tensor: Any) -> Any:
    return tf.transpose(tensor, [1, 0, *range(2, tensor.shape.rank)])


def _unstack(tensor: Any) -> Any:
    array = tf.TensorArray(tensor.dtype, size=tf.shape(tensor)[0], element_shape=tensor.shape[1:])
    return array.unstack(tensor)

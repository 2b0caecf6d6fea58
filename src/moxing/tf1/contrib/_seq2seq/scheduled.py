"""Scheduled sampling (https://arxiv.org/abs/1506.03099): training inputs of which some are the decoder's outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from moxing.tf1.contrib._seq2seq.helpers import TrainingHelper, categorical, embedding_function

v1 = tf.compat.v1


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Replaces an input by the embedding of a sampled id, with a probability; the sample is -1 where it does not.

    Args:
      inputs: [batch, time, size].
      sequence_length: integer [batch].
      embedding: [symbols, size], or a function from ids to embeddings.
      sampling_probability: scalar, or [batch].
      time_major: whether inputs are [time, batch, size].
      seed: seed of the sampled ids.
      scheduling_seed: seed of the choice whether to sample.
      name: name of the operations.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(inputs, sequence_length, time_major, name)
        self._embedding_fn = embedding_function(embedding)
        self._probability = _probability(sampling_probability)
        self._seed = seed
        self._scheduling_seed = scheduling_seed

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        ids = categorical(outputs, self._seed)
        chosen = _chosen(self._probability, self._batch_size, self._scheduling_seed)
        return tf.where(chosen, ids, tf.fill(tf.shape(ids), -1))

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        finished, given, state = super().next_inputs(time, outputs, state)
        sampled = self._embedding_fn(tf.maximum(sample_ids, 0))
        return finished, v1.where(sample_ids >= 0, sampled, given), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """Replaces an input by the output of the decoder, with a probability; the sample is 1 where it does.

    Args:
      inputs: [batch, time, size].
      sequence_length: integer [batch].
      sampling_probability: scalar, or [batch].
      time_major: whether inputs are [time, batch, size].
      seed: seed of the choice.
      next_inputs_fn: from outputs to inputs. Default: the outputs.
      auxiliary_inputs: [batch, time, n], appended to every input.
      name: name of the operations.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        next_inputs_fn: Callable[[Any], Any] | None = None,
        auxiliary_inputs: Any = None,
        name: str | None = None,
    ) -> None:
        self._auxiliary = None
        if auxiliary_inputs is not None:
            auxiliary = tf.convert_to_tensor(auxiliary_inputs)
            inputs = tf.concat([tf.convert_to_tensor(inputs), auxiliary], axis=-1)
            self._auxiliary = int(auxiliary.shape[-1])
        super().__init__(inputs, sequence_length, time_major, name)
        self._probability = _probability(sampling_probability)
        self._seed = seed
        self._next_inputs_fn = next_inputs_fn

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        return tf.cast(_chosen(self._probability, self._batch_size, self._seed), tf.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        finished, given, state = super().next_inputs(time, outputs, state)
        sampled = self._next_inputs_fn(outputs) if self._next_inputs_fn else outputs
        if self._auxiliary is not None:
            sampled = tf.concat([sampled, given[:, -self._auxiliary :]], axis=-1)
        return finished, v1.where(tf.cast(sample_ids, tf.bool), sampled, given), state


def _probability(value: Any) -> Any:
    probability = tf.convert_to_tensor(value, name="sampling_probability")
    if probability.shape.rank not in (0, 1):
        raise ValueError(f"sampling_probability must be a scalar or [batch], got the shape {probability.shape}")
    return probability


def _chosen(probability: Any, batch_size: Any, seed: int | None) -> Any:
    return v1.random_uniform([batch_size], dtype=probability.dtype, seed=seed) < probability

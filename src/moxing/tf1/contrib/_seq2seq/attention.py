"""Attention mechanisms: Luong's product and Bahdanau's sum.

A mechanism is called with a query [batch, n] and its state, and returns alignments [batch, memory time] and its next
state; for these mechanisms the state is the alignments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1


class AttentionMechanism:
    """The base class of all mechanisms."""

    @property
    def alignments_size(self) -> Any:
        """Number of positions of the memory."""
        raise NotImplementedError

    @property
    def state_size(self) -> Any:
        """Size of the state."""
        raise NotImplementedError


class BaseAttentionMechanism(AttentionMechanism):
    """The memory of a mechanism: `values`, zero in the padding, and `keys`, what a layer makes of them.

    Args:
      query_layer: a layer for the query, or None.
      memory: [batch, time, ...], usually the outputs of an encoder.
      probability_fn: called with scores [batch, time] and the state, returns alignments.
      memory_sequence_length: integer [batch], the lengths of the memory.
      memory_layer: a layer that makes keys of values, or None.
      check_inner_dims_defined: whether to require static sizes after the second.
      score_mask_value: the score of the padding. Default: -inf.
      custom_key_value_fn: called with keys and values, returns those to use.
      name: name of the operations.
    """

    def __init__(
        self,
        query_layer: Any,
        memory: Any,
        probability_fn: Callable[[Any, Any], Any],
        memory_sequence_length: Any = None,
        memory_layer: Any = None,
        check_inner_dims_defined: bool = True,
        score_mask_value: Any = None,
        custom_key_value_fn: Callable[[Any, Any], Any] | None = None,
        name: str | None = None,
    ) -> None:
        for argument, layer in (("query_layer", query_layer), ("memory_layer", memory_layer)):
            if layer is not None and not callable(layer):
                raise TypeError(f"{argument} must be a layer or None, got {layer!r}")
        if not callable(probability_fn):
            raise TypeError(f"probability_fn must be a function, got {probability_fn!r}")
        self._query_layer = query_layer
        self._memory_layer = memory_layer
        with v1.name_scope(name, "BaseAttentionMechanismInit", tf.nest.flatten(memory)):
            self._values = prepare_memory(memory, memory_sequence_length, check_inner_dims_defined)
            self._keys = memory_layer(self._values) if memory_layer else self._values
            if custom_key_value_fn is not None:
                self._keys, self._values = custom_key_value_fn(self._keys, self._values)
            self._batch_size = self._keys.shape[0] or tf.shape(self._keys)[0]
            self._alignments_size = self._keys.shape[1] or tf.shape(self._keys)[1]
        # Programs set it; the type of the layer is known after it was called.
        self.dtype = memory_layer.dtype if memory_layer is not None else self._keys.dtype
        mask = self._keys.dtype.as_numpy_dtype(-np.inf) if score_mask_value is None else score_mask_value
        self._probability_fn = lambda score, state: probability_fn(
            mask_score(score, memory_sequence_length, mask), state
        )

    @property
    def memory_layer(self) -> Any:
        """The layer that makes keys of values."""
        return self._memory_layer

    @property
    def query_layer(self) -> Any:
        """The layer for the query."""
        return self._query_layer

    @property
    def values(self) -> Any:
        """The memory, zero in the padding."""
        return self._values

    @property
    def keys(self) -> Any:
        """What the query is compared with."""
        return self._keys

    @property
    def batch_size(self) -> Any:
        """The batch size of the memory."""
        return self._batch_size

    @property
    def alignments_size(self) -> Any:
        return self._alignments_size

    @property
    def state_size(self) -> Any:
        return self._alignments_size

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """Returns the alignments before the first step: zeros."""
        zeros = tf.zeros([batch_size, self._alignments_size], dtype)
        zeros.set_shape([tf.get_static_value(batch_size), self._keys.shape[1]])
        return zeros

    def initial_state(self, batch_size: Any, dtype: Any) -> Any:
        """Returns the state before the first step: the initial alignments."""
        return self.initial_alignments(batch_size, dtype)


class LuongAttention(BaseAttentionMechanism):
    """Scores by the product of query and keys (https://arxiv.org/abs/1508.04025).

    Args:
      num_units: size of the keys, which must be that of the query.
      memory: [batch, time, ...].
      memory_sequence_length: integer [batch].
      scale: whether to multiply the scores by the variable `attention_g`.
      probability_fn: from scores to alignments. Default: softmax.
      score_mask_value: the score of the padding. Default: -inf.
      dtype: type of the layer. Default: float32.
      custom_key_value_fn: called with keys and values, returns those to use.
      name: name of the operations.
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable[[Any, Any], Any] | None = None,
        name: str = "LuongAttention",
    ) -> None:
        probabilities = probability_fn or tf.nn.softmax
        super().__init__(
            query_layer=None,
            memory=memory,
            probability_fn=lambda score, _: probabilities(score),
            memory_sequence_length=memory_sequence_length,
            memory_layer=dense(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units = num_units
        self._scale = scale
        self._name = name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """Returns the alignments, which are also the next state."""
        with v1.variable_scope(None, "luong_attention", [query]):
            score = luong_score(query, self._keys, self._scale)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class BahdanauAttention(BaseAttentionMechanism):
    """Scores by a hidden layer of the sum of query and keys (https://arxiv.org/abs/1409.0473).

    Args:
      num_units: size of the hidden layer.
      memory: [batch, time, ...].
      memory_sequence_length: integer [batch].
      normalize: whether to normalise the weights (https://arxiv.org/abs/1602.07868).
      probability_fn: from scores to alignments. Default: softmax.
      score_mask_value: the score of the padding. Default: -inf.
      dtype: type of the layers. Default: float32.
      custom_key_value_fn: called with keys and values, returns those to use.
      name: name of the operations.
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable[[Any, Any], Any] | None = None,
        name: str = "BahdanauAttention",
    ) -> None:
        probabilities = probability_fn or tf.nn.softmax
        super().__init__(
            query_layer=dense(num_units, "query_layer", dtype),
            memory=memory,
            probability_fn=lambda score, _: probabilities(score),
            memory_sequence_length=memory_sequence_length,
            memory_layer=dense(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units = num_units
        self._normalize = normalize
        self._name = name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """Returns the alignments, which are also the next state."""
        with v1.variable_scope(None, "bahdanau_attention", [query]):
            processed = self.query_layer(query) if self.query_layer else query
            score = bahdanau_score(processed, self._keys, self._normalize)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


def dense(units: int, name: str, dtype: Any) -> Any:
    """Returns a layer without bias."""
    return v1.layers.Dense(units, name=name, use_bias=False, dtype=dtype or tf.float32)


def hardmax(logits: Any, name: str | None = None) -> Any:
    """Returns 1 at the highest logit of the last dimension and 0 elsewhere.

    Example:
      >>> with tf.Graph().as_default(), v1.Session() as session:
      ...     print(session.run(hardmax([[0.1, 3.0, 2.0]])))
      [[0. 1. 0.]]
    """
    with v1.name_scope(name, "Hardmax", [logits]):
        logits = tf.convert_to_tensor(logits, name="logits")
        return tf.one_hot(tf.argmax(logits, axis=-1), logits.shape[-1] or tf.shape(logits)[-1], dtype=logits.dtype)


def prepare_memory(memory: Any, memory_sequence_length: Any, check_inner_dims_defined: bool) -> Any:
    """Returns a memory as tensors that are zero in the padding."""

    def one(value: Any) -> Any:
        value = tf.convert_to_tensor(value, name="memory")
        if check_inner_dims_defined and not value.shape[2:].is_fully_defined():
            raise ValueError(f"memory must have static sizes after [batch, time], got the shape {value.shape}")
        if memory_sequence_length is None:
            return value
        mask = tf.sequence_mask(memory_sequence_length, tf.shape(value)[1], dtype=value.dtype)
        same = v1.assert_equal(
            tf.shape(mask)[0],
            tf.shape(value)[0],
            message="memory_sequence_length and memory have different batch sizes",
        )
        with tf.control_dependencies([same] if same is not None else []):
            return value * tf.reshape(mask, tf.concat([tf.shape(mask), [1] * (value.shape.rank - 2)], axis=0))

    return tf.nest.map_structure(one, memory)


def mask_score(score: Any, memory_sequence_length: Any, score_mask_value: Any) -> Any:
    """Returns scores [batch, time] with a value in the padding."""
    if memory_sequence_length is None:
        return score
    positive = v1.assert_positive(
        memory_sequence_length, message="all values of memory_sequence_length must be greater than 0"
    )
    with tf.control_dependencies([positive] if positive is not None else []):
        mask = tf.sequence_mask(memory_sequence_length, tf.shape(score)[1])
        return tf.where(mask, score, score_mask_value * tf.ones_like(score))


def luong_score(query: Any, keys: Any, scale: bool) -> Any:
    """Returns the scores of Luong's attention, [batch, time]."""
    if query.shape[-1] != keys.shape[-1]:
        raise ValueError(
            f"num_units must be the size of the query, {query.shape[-1]}: the keys have the size {keys.shape[-1]}"
        )
    score = tf.einsum("bd,btd->bt", query, keys)
    if scale:
        score *= v1.get_variable("attention_g", [], query.dtype, v1.ones_initializer())
    return score


def bahdanau_score(processed_query: Any, keys: Any, normalize: bool) -> Any:
    """Returns the scores of Bahdanau's attention, [batch, time]."""
    units, dtype = int(keys.shape[2]), processed_query.dtype
    vector = v1.get_variable("attention_v", [units], dtype)
    hidden = keys + processed_query[:, None]
    if normalize:
        gain = v1.get_variable("attention_g", [], dtype, v1.constant_initializer(math.sqrt(1.0 / units)))
        bias = v1.get_variable("attention_b", [units], dtype, v1.zeros_initializer())
        vector = gain * vector * tf.math.rsqrt(tf.reduce_sum(tf.square(vector)))
        hidden += bias
    return tf.reduce_sum(vector * tf.tanh(hidden), axis=2)

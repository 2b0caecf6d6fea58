"""Monotonic attention (https://arxiv.org/abs/1704.00784): the position in the memory only moves forward."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from moxing.tf1.contrib._seq2seq.attention import BaseAttentionMechanism, bahdanau_score, dense, luong_score

v1 = tf.compat.v1


def safe_cumprod(x: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns the cumulative product of values in [0, 1], with a finite gradient at 0; arguments of `tf.cumsum`."""
    x = tf.convert_to_tensor(x, name="x")
    smallest = np.finfo(x.dtype.as_numpy_dtype).tiny
    return tf.exp(tf.cumsum(tf.math.log(tf.clip_by_value(x, smallest, 1)), *args, **kwargs))


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Any:
    """Returns the distribution over the position that is attended to, [batch, time].

    Args:
      p_choose_i: [batch, time], the probability to stop at a position that was reached.
      previous_attention: [batch, time], the distribution of the step before.
      mode: `recursive` (exact), `parallel` (exact up to small numbers, fast), or `hard` (for values 0 and 1).
    """
    p, previous = tf.convert_to_tensor(p_choose_i), tf.convert_to_tensor(previous_attention)
    if mode == "recursive":
        passed = tf.concat([tf.ones_like(p[:, :1]), 1 - p[:, :-1]], axis=1)
        reached = tf.scan(
            lambda before, now: now[0] * before + now[1],
            [tf.transpose(passed), tf.transpose(previous)],
            initializer=tf.zeros_like(p[:, 0]),
        )
        return p * tf.transpose(reached)
    if mode == "parallel":
        passed = safe_cumprod(1 - p, axis=1, exclusive=True)
        return p * passed * tf.cumsum(previous / tf.clip_by_value(passed, 1e-10, 1.0), axis=1)
    if mode == "hard":
        # Positions before the last one cannot be chosen; of the others, the first.
        p *= tf.cumsum(previous, axis=1)
        return p * tf.math.cumprod(1 - p, axis=1, exclusive=True)
    raise ValueError(f"mode must be 'recursive', 'parallel' or 'hard', got {mode!r}")


def monotonic_probability_fn(
    score: Any, previous_alignments: Any, sigmoid_noise: float, mode: str, seed: int | None = None
) -> Any:
    """Returns the alignments for scores [batch, time]; noise before the sigmoid makes it choose clearly."""
    if sigmoid_noise > 0:
        score += sigmoid_noise * v1.random_normal(tf.shape(score), dtype=score.dtype, seed=seed)
    p = tf.cast(score > 0, score.dtype) if mode == "hard" else tf.sigmoid(score)
    return monotonic_attention(p, previous_alignments, mode)


class BaseMonotonicAttentionMechanism(BaseAttentionMechanism):
    """A mechanism that starts at the first position."""

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """Returns 1 at the first position and 0 elsewhere."""
        return tf.one_hot(tf.zeros([batch_size], tf.int32), self._alignments_size, dtype=dtype)


class BahdanauMonotonicAttention(BaseMonotonicAttentionMechanism):
    """`BahdanauAttention` with monotonic alignments.

    Args:
      num_units: size of the hidden layer.
      memory: [batch, time, ...].
      memory_sequence_length: integer [batch].
      normalize: as in `BahdanauAttention`.
      score_mask_value: the score of the padding. Default: -inf.
      sigmoid_noise: standard deviation of the noise that is added to scores.
      sigmoid_noise_seed: seed of the noise.
      score_bias_init: initial value of the bias of scores; negative for a long memory.
      mode: as in `monotonic_attention`.
      dtype: type of the layers. Default: float32.
      name: name of the operations.
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:
        super().__init__(
            query_layer=dense(num_units, "query_layer", dtype),
            memory=memory,
            probability_fn=_probabilities(sigmoid_noise, mode, sigmoid_noise_seed),
            memory_sequence_length=memory_sequence_length,
            memory_layer=dense(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units = num_units
        self._normalize = normalize
        self._score_bias_init = score_bias_init
        self._name = name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """Returns the alignments, which are also the next state."""
        with v1.variable_scope(None, "bahdanau_monotonic_attention", [query]):
            processed = self.query_layer(query) if self.query_layer else query
            score = bahdanau_score(processed, self._keys, self._normalize) + _bias(query, self._score_bias_init)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class LuongMonotonicAttention(BaseMonotonicAttentionMechanism):
    """`LuongAttention` with monotonic alignments; see there and at `BahdanauMonotonicAttention`."""

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "LuongMonotonicAttention",
    ) -> None:
        super().__init__(
            query_layer=None,
            memory=memory,
            probability_fn=_probabilities(sigmoid_noise, mode, sigmoid_noise_seed),
            memory_sequence_length=memory_sequence_length,
            memory_layer=dense(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units = num_units
        self._scale = scale
        self._score_bias_init = score_bias_init
        self._name = name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """Returns the alignments, which are also the next state."""
        with v1.variable_scope(None, "luong_monotonic_attention", [query]):
            score = luong_score(query, self._keys, self._scale) + _bias(query, self._score_bias_init)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


def _probabilities(noise: float, mode: str, seed: int | None) -> Callable[[Any, Any], Any]:
    return functools.partial(monotonic_probability_fn, sigmoid_noise=noise, mode=mode, seed=seed)


def _bias(query: Any, start: float) -> Any:
    return v1.get_variable("attention_score_bias", [], query.dtype, v1.constant_initializer(start))

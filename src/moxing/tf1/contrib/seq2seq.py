"""`tf.contrib.seq2seq`: decoders, helpers, attention and beam search (`_seq2seq`)."""

from __future__ import annotations

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_PACKAGE = "moxing.tf1.contrib._seq2seq"
_NAMES = _lazy.names(
    (
        f"{_PACKAGE}.attention:",
        "AttentionMechanism BahdanauAttention LuongAttention hardmax _BaseAttentionMechanism=BaseAttentionMechanism "
        "_bahdanau_score=bahdanau_score _luong_score=luong_score _maybe_mask_score=mask_score "
        "_prepare_memory=prepare_memory",
    ),
    (
        f"{_PACKAGE}.monotonic:",
        "BahdanauMonotonicAttention LuongMonotonicAttention monotonic_attention safe_cumprod "
        "_BaseMonotonicAttentionMechanism=BaseMonotonicAttentionMechanism "
        "_monotonic_probability_fn=monotonic_probability_fn",
    ),
    (
        f"{_PACKAGE}.attention_wrapper:",
        "AttentionWrapper AttentionWrapperState _compute_attention=compute_attention",
    ),
    (f"{_PACKAGE}.decoder:", "BasicDecoder BasicDecoderOutput Decoder dynamic_decode"),
    (
        f"{_PACKAGE}.helpers:",
        "CustomHelper GreedyEmbeddingHelper Helper InferenceHelper SampleEmbeddingHelper TrainingHelper",
    ),
    (f"{_PACKAGE}.scheduled:", "ScheduledEmbeddingTrainingHelper ScheduledOutputTrainingHelper"),
    (
        f"{_PACKAGE}.beam_search:",
        "BeamSearchDecoder BeamSearchDecoderOutput BeamSearchDecoderState FinalBeamSearchDecoderOutput",
    ),
    (f"{_PACKAGE}.beams:", "gather_tree gather_tree_from_array tile_batch"),
    (f"{_PACKAGE}.loss:", "sequence_loss"),
    ("tensorflow.python.ops.rnn:", "_transpose_batch_time"),
)
__all__ = [name for name in _NAMES if not name.startswith("_")]
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)

"""`tf.contrib.crf`: linear-chain conditional random fields (`_crf`)."""

from __future__ import annotations

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_NAMES = _lazy.names(
    (
        "moxing.tf1.contrib._crf:",
        "CrfDecodeBackwardRnnCell CrfDecodeForwardRnnCell CrfForwardRnnCell crf_binary_score crf_decode "
        "crf_log_likelihood crf_log_norm crf_multitag_sequence_score crf_sequence_score crf_unary_score viterbi_decode",
    ),
)
__all__ = [*_NAMES]
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)

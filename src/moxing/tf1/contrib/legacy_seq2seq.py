"""`tf.contrib.legacy_seq2seq`: sequence-to-sequence models over lists of tensors (`_legacy_seq2seq`)."""

from __future__ import annotations

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_PACKAGE = "moxing.tf1.contrib._legacy_seq2seq"
_NAMES = _lazy.names(
    (f"{_PACKAGE}.decoders:", "attention_decoder embedding_attention_decoder embedding_rnn_decoder rnn_decoder"),
    (
        f"{_PACKAGE}.models:",
        "basic_rnn_seq2seq embedding_attention_seq2seq embedding_rnn_seq2seq embedding_tied_rnn_seq2seq "
        "one2many_rnn_seq2seq tied_rnn_seq2seq",
    ),
    (f"{_PACKAGE}.losses:", "model_with_buckets sequence_loss sequence_loss_by_example"),
    # Private there, but programs of 2016 use them.
    (f"{_PACKAGE}.decoders:", "_extract_argmax_and_embed=extract_argmax_and_embed"),
    ("moxing.tf1.contrib._cells.linear:", "linear"),
)
__all__ = [name for name in _NAMES if not name.startswith("_")]
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)

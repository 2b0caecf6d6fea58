"""Cells of `tf.contrib.rnn` that are not available: they can be imported, and raise an error when they are built."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_INSTEAD = {
    "BidirectionalGridLSTMCell": "use LSTMCell in static_bidirectional_rnn",
    "CFNCell": "use GRUCell",
    "CompiledWrapper": "use the cell without it: the result is the same",
    "GridLSTMCell": "use LSTMCell",
    "IndRNNCell": "use BasicRNNCell",
    "IndyGRUCell": "use GRUCell",
    "IndyLSTMCell": "use LSTMCell",
    "LayerNormLSTMCell": "use LayerNormBasicLSTMCell",
    "MinimalRNNCell": "use UGRNNCell",
    "SRUCell": "use UGRNNCell or GRUCell",
    "TimeFreqLSTMCell": "use LSTMCell",
    "WeightNormLSTMCell": "use LSTMCell or LayerNormBasicLSTMCell",
}


def __getattr__(name: str) -> Any:
    if name not in _INSTEAD:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"tf.contrib.rnn.{name} is not available; {_INSTEAD[name]}")

    return type(name, (tf.compat.v1.nn.rnn_cell.RNNCell,), {"__init__": refuse, "__doc__": f"Refused: {name}."})

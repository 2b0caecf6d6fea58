"""Error messages for missing parts of `tf.contrib`, with what to use instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: By the first name below `tf.contrib`, or the first two.
_INSTEAD = {
    "data.prefetch_to_device": "mox.run prefetches by itself, remove the call; elsewhere use "
    "tf.data.experimental.prefetch_to_device",
    "hparams": "use tf.contrib.training.HParams",
    "learn": "use tf.estimator; for MNIST tensorflow.examples.tutorials.mnist.input_data",
    "quantize": "use the package tensorflow-model-optimization",
}


def missing_part(name: str, parts: Iterable[str]) -> str:
    """Returns the error message for a missing `tf.contrib.NAME`.

    Example:
      >>> print(missing_part('hparams', ['data', 'slim']))
      tf.contrib.hparams is not available; use tf.contrib.training.HParams. tf.contrib has: data, slim
    """
    return f"tf.contrib.{name} is not available{_hint(name, parts)}. tf.contrib has: {', '.join(sorted(parts))}"


def missing_name(part: str, name: str, names: Iterable[str]) -> str:
    """Returns the error message for a missing `tf.contrib.PART.NAME`.

    Example:
      >>> missing_name('rnn', 'LSTMCel', ['GRUCell', 'LSTMCell'])
      'tf.contrib.rnn.LSTMCel is not available; did you mean LSTMCell? tf.contrib.rnn has: GRUCell, LSTMCell'
    """
    hint = _hint(f"{part}.{name}", names)
    stop = "" if hint.endswith("?") else "."
    return f"tf.contrib.{part}.{name} is not available{hint}{stop} tf.contrib.{part} has: {', '.join(sorted(names))}"


def _hint(name: str, existing: Iterable[str]) -> str:
    head = name.partition(".")[0]
    instead = _INSTEAD.get(name) or _INSTEAD.get(head)
    if instead:
        return f"; {instead}"
    near = difflib.get_close_matches(name.rpartition(".")[2], list(existing), n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""

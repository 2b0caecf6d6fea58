"""Error messages for missing parts of `tf.contrib`, with what to use instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_ADDONS = "it moved to the package tensorflow-addons, which is no longer maintained and needs an older TensorFlow"

#: By the first name below `tf.contrib`, or the first two.
_INSTEAD = {
    "crf": f"{_ADDONS} (tfa.text)",
    "data.prefetch_to_device": "mox.run prefetches by itself, remove the call; elsewhere use "
    "tf.data.experimental.prefetch_to_device",
    "hparams": "use tf.contrib.training.HParams",
    "learn": "use tf.estimator; for MNIST tensorflow.examples.tutorials.mnist.input_data",
    "legacy_seq2seq": _ADDONS + " (tfa.seq2seq, in its later form)",
    "opt": f"{_ADDONS} (tfa.optimizers); the optimizers of tf.train and mox.get_optimizer_fn are available",
    "quantize": "use the package tensorflow-model-optimization",
    "seq2seq": f"{_ADDONS} (tfa.seq2seq)",
}


def missing_part(name: str, parts: Iterable[str]) -> str:
    """Returns the error message for a missing `tf.contrib.NAME`.

    Example:
      >>> print(missing_part('crf', ['data', 'slim']))
      tf.contrib.crf is not available; it moved to the package tensorflow-addons, which is no longer maintained and \
needs an older TensorFlow (tfa.text). tf.contrib has: data, slim
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

"""Error messages for missing parts of `tf.contrib`, with what to use instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: By the first name below `tf.contrib`, or the first two.
_INSTEAD = {
    "all_reduce": "use tf.distribute, or --variable_update of mox.run",
    "bayesflow": "use the package tensorflow-probability",
    "cudnn_rnn": "use tf.keras.layers.CuDNNLSTM and CuDNNGRU, or contrib.rnn",
    "data.prefetch_to_device": "mox.run prefetches by itself, remove the call; elsewhere use "
    "tf.data.experimental.prefetch_to_device",
    "distributions": "use the package tensorflow-probability",
    "eager": "eager execution is part of TensorFlow 2; mox.run builds graphs",
    "ffmpeg": "use the package tensorflow-io",
    "gan": "use the package tensorflow-gan",
    "graph_editor": "use tf.graph_util and tf.import_graph_def",
    "hparams": "use tf.contrib.training.HParams",
    "learn": "use tf.estimator; for MNIST tensorflow.examples.tutorials.mnist.input_data",
    "lite": "use tf.lite",
    "memory_stats": "use tf.config.experimental.get_memory_info",
    "nccl": "mox.run combines gradients by itself; elsewhere use tf.distribute",
    "nn": "use tf.nn",
    "quantize": "use the package tensorflow-model-optimization",
    "saved_model": "use tf.saved_model",
    "stateless": "use tf.random.stateless_uniform and similar functions",
    "summary": "use tf.summary",
    "tensor_forest": "use the package tensorflow-decision-forests",
    "tensorboard": "use the package tensorboard",
    "tensorrt": "use tf.experimental.tensorrt",
    "text": "use the package tensorflow-text",
    "tfprof": "use tf.profiler",
    "timeseries": "use the package tensorflow-probability (tfp.sts)",
}


def missing_part(name: str, parts: Iterable[str]) -> str:
    """Returns the error message for a missing `tf.contrib.NAME`.

    Example:
      >>> print(missing_part('tensorrt', ['data', 'slim']))
      tf.contrib.tensorrt is not available; use tf.experimental.tensorrt. tf.contrib has: data, slim
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

"""`tf.contrib.quantize`: can be imported, as TF-Slim's programs do; its functions say what quantizes a model today."""

from __future__ import annotations

from typing import Any, NoReturn

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

__all__ = [
    "create_eval_graph",
    "create_training_graph",
    "experimental_create_eval_graph",
    "experimental_create_training_graph",
]
__getattr__, __dir__ = _lazy.module_functions(__name__, {})


def create_training_graph(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises an error: TensorFlow 2 cannot add the operations of quantization to a finished graph.

    Example:
      >>> create_training_graph(quant_delay=0)
      Traceback (most recent call last):
      NotImplementedError: tf.contrib.quantize.create_training_graph is not available: TensorFlow 2 cannot ...
    """
    _refuse("create_training_graph")


def create_eval_graph(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises an error, as `create_training_graph` does."""
    _refuse("create_eval_graph")


def experimental_create_training_graph(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises an error, as `create_training_graph` does."""
    _refuse("experimental_create_training_graph")


def experimental_create_eval_graph(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises an error, as `create_training_graph` does."""
    _refuse("experimental_create_eval_graph")


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"tf.contrib.quantize.{name} is not available: TensorFlow 2 cannot rewrite a graph for training with quantized "
        "values. Train without it (TF-Slim: leave out --quantize_delay and --quantize), export the model, and quantize "
        "it with tf.lite.TFLiteConverter (optimizations=[tf.lite.Optimize.DEFAULT]). To train a Keras model with "
        "quantized values use the package tensorflow-model-optimization."
    )

"""The modules that serve the Keras and `tf.layers` names of TensorFlow 1.

TensorFlow 2.21 ships a private remainder of Keras as `tensorflow.python.keras`, without LSTM and many other layers.
User code gets tf-keras under all these names, in its v1 flavor: with the defaults of TensorFlow 1 (an LSTM with
`hard_sigmoid`) and with layers that build plain graphs.
"""

from __future__ import annotations

from collections.abc import Mapping

_KERAS = "tf_keras.api._v1.keras"
_LAYERS = f"{_KERAS}.__internal__.legacy.layers"

# Modules that the public packages of tf-keras do not list, by their name in TensorFlow 1.
_UTILS = (
    "conv_utils",
    "data_utils",
    "generic_utils",
    "io_utils",
    "layer_utils",
    "losses_utils",
    "metrics_utils",
    "np_utils",
    "tf_utils",
    "vis_utils",
)
# Modules that were split differently since; the package itself has every layer that was in them.
_LAYER_MODULES = (
    "advanced_activations",
    "convolutional",
    "convolutional_recurrent",
    "core",
    "cudnn_recurrent",
    "embeddings",
    "local",
    "merge",
    "noise",
    "normalization",
    "pooling",
    "recurrent",
    "wrappers",
)


def _keras_modules(prefix: str) -> dict[str, str]:
    table = {
        prefix: _KERAS,
        f"{prefix}.backend": "tf_keras.src.backend",
        f"{prefix}.engine": "tf_keras.src.engine",
        f"{prefix}.engine.topology": f"{_KERAS}.layers",
    }
    table.update({f"{prefix}.utils.{name}": f"tf_keras.src.utils.{name}" for name in _UTILS})
    table.update({f"{prefix}.layers.{name}": f"{_KERAS}.layers" for name in _LAYER_MODULES})
    return table


#: Import names of TensorFlow 1 and the modules that serve them. The longest prefix counts; the rest is appended.
MODULES: dict[str, str] = {
    # Keras 2 as a package of its own, as scripts of the time import it. What is installed as `keras` is Keras 3.
    **_keras_modules("keras"),
    **_keras_modules("tensorflow.keras"),
    **_keras_modules("tensorflow.python.keras"),
    # TensorFlow 1.4 had the code itself below this name.
    **_keras_modules("tensorflow.python.keras._impl.keras"),
    "tensorflow.layers": _LAYERS,
    "tensorflow.python.layers": "tf_keras.src.legacy_tf_layers",
    # The base module of tf-keras lacks InputSpec; the package of all layers has both.
    "tensorflow.python.layers.base": _LAYERS,
    "tensorflow.python.layers.layers": _LAYERS,
    "tensorflow.python.layers.utils": "tensorflow.python.layers.utils",
}


def module_name(name: str, table: Mapping[str, str] = MODULES) -> str | None:
    """Returns the module behind an import name of TensorFlow 1, or None if it is not in the table.

    Example:
      >>> module_name('tensorflow.python.keras.preprocessing.text')
      'tf_keras.api._v1.keras.preprocessing.text'
      >>> module_name('tensorflow.python.keras.layers.recurrent')
      'tf_keras.api._v1.keras.layers'
      >>> module_name('tensorflow.contrib') is None
      True
    """
    prefix = name
    while prefix not in table:
        prefix, _, _ = prefix.rpartition(".")
        if not prefix:
            return None
    return table[prefix] + name[len(prefix) :]

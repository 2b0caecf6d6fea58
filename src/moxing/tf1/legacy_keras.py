"""Where the Keras and `tf.layers` names of TensorFlow 1 are found today, and what keeps them working in a v1 graph.

TensorFlow 2.21 ships a private remainder of Keras as `tensorflow.python.keras`, without LSTM and many others. User
code gets tf-keras under all these names, in its v1 flavour: the defaults of TensorFlow 1 (an LSTM with
`hard_sigmoid`) and layers that build plain graphs.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

_KERAS = "tf_keras.api._v1.keras"
_LAYERS = f"{_KERAS}.__internal__.legacy.layers"

# Modules that the public packages of tf-keras do not list, by their place in TensorFlow 1.
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
# Since split up differently; the package itself has every layer that was in them.
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


#: Import names of TensorFlow 1 and the modules that serve them. The longest prefix counts; what follows it is appended.
MODULES: dict[str, str] = {
    **_keras_modules("tensorflow.keras"),
    **_keras_modules("tensorflow.python.keras"),
    # TensorFlow 1.4 kept the code itself below this name.
    **_keras_modules("tensorflow.python.keras._impl.keras"),
    "tensorflow.layers": _LAYERS,
    "tensorflow.python.layers": "tf_keras.src.legacy_tf_layers",
    # The base module of tf-keras lacks InputSpec; the package of all layers has both.
    "tensorflow.python.layers.base": _LAYERS,
    "tensorflow.python.layers.layers": _LAYERS,
    "tensorflow.python.layers.utils": "tensorflow.python.layers.utils",
}


def module_name(name: str, table: Mapping[str, str] = MODULES) -> str | None:
    """The module behind an import name of TensorFlow 1, or None if the table does not know it.

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


def install_update_recorder() -> None:
    """Makes Keras layers put their updates (batch-norm averages, RNN states) into `tf.GraphKeys.UPDATE_OPS`.

    In TensorFlow 1.4 they did, and training code runs that collection before the gradients; tf-keras only lists them
    in `layer.updates`, so the averages would never move. Each update is added to the graph it lives in, once.
    Left out are: layers of `tf.layers`, which add their own; metrics; frozen layers; function graphs, where an op
    cannot be run from outside; and updates that hang on the placeholder of a Keras `Input`, which nobody feeds: they
    come from building a functional model, and calling the model on real tensors adds the ones that count.

    It may be called any number of times; before tf-keras is imported it takes effect when that happens.
    """
    _on_import("tf_keras.src.engine.base_layer_v1", _record_updates)


def install_graph_seeds() -> None:
    """Makes `tf.set_random_seed` count for the variables of Keras layers and `tf.layers`, as it did in TensorFlow 1.

    Where no seed was given, the initializers of tf-keras draw one from Python's `random`. In a graph with a seed they
    get one that follows from it. It may be called any number of times, before or after tf-keras is imported.
    """
    _on_import("tf_keras.src.backend", _seed_from_graph)


def _on_import(name: str, action: Callable[[ModuleType], None]) -> None:
    """Calls `action` with a module: now, or when it is imported."""
    if name in sys.modules:
        action(sys.modules[name])
    elif not any(isinstance(finder, _AfterImport) and finder.name == name for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport(name, action))


class _AfterImport:
    """Finds one module as Python does, and has `action` called when it was executed."""

    def __init__(self, name: str, action: Callable[[ModuleType], None]) -> None:
        self.name, self._action = name, action

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _ActingLoader(spec.loader.name, spec.loader.path, self._action)
        return spec


class _ActingLoader(SourceFileLoader):
    def __init__(self, name: str, path: str, action: Callable[[ModuleType], None]) -> None:
        super().__init__(name, path)
        self._action = action

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        self._action(module)


def _record_updates(base: Any) -> None:
    if not hasattr(base.Layer.add_update, "_moxing_original"):
        base.Layer.add_update = _recording(base.Layer.add_update)


def _seed_from_graph(backend: Any) -> None:
    original = backend.RandomGenerator._create_seed
    if hasattr(original, "_moxing_original"):
        return

    @functools.wraps(original)
    def create_seed(self: Any, user_specified_seed: int | None) -> int:
        from tensorflow.python.framework import ops, random_seed

        if user_specified_seed is None and ops.get_default_graph().seed is not None:
            graph_seed, operation_seed = random_seed.get_seed(None)
            return int((graph_seed * 1_000_003 + operation_seed) % 10**9 + 1)
        return int(original(self, user_specified_seed))

    create_seed._moxing_original = original  # type: ignore[attr-defined]
    backend.RandomGenerator._create_seed = create_seed


def _recording(original: Any) -> Any:
    @functools.wraps(original)
    def add_update(self: Any, updates: Any, inputs: Any = None) -> None:
        # `inputs` is an argument of TensorFlow 1; today's Keras finds the inputs by itself.
        del inputs
        listed = len(self._updates)
        original(self, updates)
        if not _adds_its_own(self) and (self.trainable or self.stateful):
            _record(self._updates[listed:])

    add_update._moxing_original = original  # type: ignore[attr-defined]
    return add_update


def _adds_its_own(layer: Any) -> bool:
    legacy = sys.modules.get("tf_keras.src.legacy_tf_layers.base")
    metric = sys.modules.get("tf_keras.src.metrics.base_metric")
    kinds = tuple(kind for kind in (getattr(legacy, "Layer", None), getattr(metric, "Metric", None)) if kind)
    return isinstance(layer, kinds)


def _record(updates: list[Any]) -> None:
    for update in updates:
        graph = update.graph
        if graph.building_function or _hangs_on_keras_input(update):
            continue
        collection = graph.get_collection_ref("update_ops")
        if not any(update is other for other in collection):
            collection.append(update)


# Per graph: the answers so far by op name, so that a deep network is walked once and not once per layer.
_KNOWN: weakref.WeakKeyDictionary[Any, dict[str, bool]] = weakref.WeakKeyDictionary()


def _hangs_on_keras_input(update: Any) -> bool:
    """Whether the op (or the tensor's op) can be reached from the placeholder of a Keras `Input`."""
    root = getattr(update, "op", update)
    known = _KNOWN.setdefault(root.graph, {})
    stack = [root]
    while stack:
        op = stack[-1]
        if op.name in known:
            stack.pop()
            continue
        # The back edge of a v1 while loop is left out, or the walk would not end.
        parents = [tensor.op for tensor in op.inputs if tensor.op.type != "NextIteration"]
        missing = [parent for parent in parents if parent.name not in known]
        if missing:
            stack.extend(missing)
            continue
        known[op.name] = _is_keras_input(op) or any(known[parent.name] for parent in parents)
        stack.pop()
    return known[root.name]


def _is_keras_input(op: Any) -> bool:
    if op.type != "Placeholder":
        return False
    history = getattr(op.outputs[0], "_keras_history", None)
    return bool(getattr(getattr(history, "layer", None), "is_placeholder", False))

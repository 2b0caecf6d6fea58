"""Repairs that make tf-keras layers work in a TensorFlow 1 graph: update operations and seeds."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any


def install_update_recorder() -> None:
    """Makes Keras layers add their updates (batch-norm averages, RNN states) to `tf.GraphKeys.UPDATE_OPS`.

    In TensorFlow 1.4 they did, and training code runs that collection. tf-keras only lists updates in `layer.updates`,
    so the averages would never change. Each update is added once, to its own graph. Not added are:

    - updates of `tf.layers`, which adds them itself, of metrics and of frozen layers
    - updates in function graphs, which cannot be run from outside
    - updates that depend on the placeholder of a Keras `Input`, which nobody feeds: they come from building a
      functional model, and calling the model on real tensors adds the right ones

    Calling this again changes nothing. If tf-keras is not imported yet, it takes effect when it is.
    """
    _on_import("tf_keras.src.engine.base_layer_v1", _record_updates)


def install_graph_seeds() -> None:
    """Makes `tf.set_random_seed` seed the variables of Keras layers and `tf.layers`, as in TensorFlow 1.

    Without this, the initializers of tf-keras draw a seed from Python's `random`. In a graph with a seed they now
    derive theirs from it. Calling this again changes nothing. If tf-keras is not imported yet, it takes effect when it
    is.
    """
    _on_import("tf_keras.src.backend", _seed_from_graph)


def _on_import(name: str, action: Callable[[ModuleType], None]) -> None:
    """Calls `action` with a module: now if it is imported, otherwise as soon as it is."""
    if name in sys.modules:
        action(sys.modules[name])
    elif not any(isinstance(finder, _AfterImport) and finder.name == name for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport(name, action))


class _AfterImport:
    """Finds one module as Python does, and calls `action` after its import."""

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


def _record_updates(base_layer: Any) -> None:
    if not hasattr(base_layer.Layer.add_update, "_moxing_original"):
        base_layer.Layer.add_update = _recording(base_layer.Layer.add_update)


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
        # `inputs` is an argument of TensorFlow 1; Keras finds the inputs itself today.
        del inputs
        count = len(self._updates)
        original(self, updates)
        if not _adds_updates_itself(self) and (self.trainable or self.stateful):
            _record(self._updates[count:])

    add_update._moxing_original = original  # type: ignore[attr-defined]
    return add_update


def _adds_updates_itself(layer: Any) -> bool:
    legacy = sys.modules.get("tf_keras.src.legacy_tf_layers.base")
    metric = sys.modules.get("tf_keras.src.metrics.base_metric")
    kinds = tuple(kind for kind in (getattr(legacy, "Layer", None), getattr(metric, "Metric", None)) if kind)
    return isinstance(layer, kinds)


def _record(updates: list[Any]) -> None:
    for update in updates:
        graph = update.graph
        if graph.building_function or _depends_on_keras_input(update):
            continue
        collection = graph.get_collection_ref("update_ops")
        if not any(update is other for other in collection):
            collection.append(update)


# Results per graph and operation name, so that a deep network is searched once and not once per layer.
_KNOWN: weakref.WeakKeyDictionary[Any, dict[str, bool]] = weakref.WeakKeyDictionary()


def _depends_on_keras_input(update: Any) -> bool:
    """Returns True if the operation, or that of a tensor, depends on the placeholder of a Keras `Input`."""
    root = getattr(update, "op", update)
    known = _KNOWN.setdefault(root.graph, {})
    stack = [root]
    while stack:
        op = stack[-1]
        if op.name in known:
            stack.pop()
            continue
        # Skip the back edge of a v1 while loop, which would be an endless cycle.
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

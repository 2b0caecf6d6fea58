"""Lets a layer or cell that was used in a loop be used outside of it, in the same graph."""

from __future__ import annotations

import functools
from typing import Any

#: Attributes in which layers of `tf.layers` and cells keep a variable scope that they enter again.
_KEPT = ("_always_reuse_variable_scope", "rnncell_scope")


def repair() -> None:
    """Changes the calls of `tf.layers` and of cells. Calling it again changes nothing.

    They keep a variable scope, and the scope keeps the graph in which it was made. In TensorFlow 1 that was always the
    one graph; today the body of a loop is a graph of its own, into which a later call would put its operations.
    """
    from tf_keras.src.layers.rnn import legacy_cells
    from tf_keras.src.legacy_tf_layers import base

    for kind in (base.Layer, legacy_cells.RNNCell):
        if not hasattr(kind.__call__, "_moxing_original"):
            kind.__call__ = _without_scopes_of_loops(kind.__call__)


def _without_scopes_of_loops(original: Any) -> Any:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        import tensorflow as tf

        if not tf.compat.v1.get_default_graph().building_function:
            for name in _KEPT:
                graph = getattr(self.__dict__.get(name), "_graph", None)
                if graph is not None and graph.building_function:
                    del self.__dict__[name]
        return original(self, *args, **kwargs)

    call._moxing_original = original  # type: ignore[attr-defined]
    return call

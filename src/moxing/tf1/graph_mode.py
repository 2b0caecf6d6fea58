"""How TensorFlow behaves for a script of TensorFlow 1: graphs, v1 shapes, no complaints about its age."""

from __future__ import annotations

import importlib.machinery
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType

from moxing.tf1 import environment

#: Warnings about the age of the API, which is what the script was written for.
_AGE_WARNINGS = (
    r"`tf\.layers\.\w+` is deprecated",
    r"`layer\.\w+` is deprecated",
    r"`tf\.nn\.rnn_cell\.\w+` is deprecated",
    r"`tf\.compat\.v1\.\w+` is deprecated",
    r"`Model\.state_updates` will be removed",
)


def switch_on() -> None:
    """Puts TensorFlow, which must be imported, into the state that a TensorFlow 1 script expects.

    Resource variables and control flow v2 stay on: the step loop is built from them, and scripts do not notice.
    """
    import tensorflow.compat.v1 as tf
    from tensorflow.python.util import deprecation

    tf.disable_eager_execution()
    tf.disable_v2_tensorshape()
    tf.enable_resource_variables()
    tf.enable_control_flow_v2()
    deprecation._PRINT_DEPRECATION_WARNINGS = False


def ignore_age_warnings() -> None:
    """Hides the Python warnings that an API of TensorFlow 1 is old.

    Example:
      >>> with warnings.catch_warnings():
      ...   ignore_age_warnings()
      ...   warnings.warn('`tf.layers.dense` is deprecated and will be removed', stacklevel=1)
    """
    for message in _AGE_WARNINGS:
        warnings.filterwarnings("ignore", message=message)


class TensorFlowFinder:
    """Switches graph mode on when TensorFlow is first imported, whoever imports it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "tensorflow":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = _TensorFlowLoader(name, spec.loader.path)
        return spec


class _TensorFlowLoader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        with environment.starting_up():
            super().exec_module(module)
        switch_on()


def install() -> None:
    """Has graph mode switched on as soon as TensorFlow is imported, or now if it was."""
    environment.prepare()
    ignore_age_warnings()
    if "tensorflow" in sys.modules:
        switch_on()
    elif not any(isinstance(finder, TensorFlowFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, TensorFlowFinder())

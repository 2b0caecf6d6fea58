"""TensorFlow 1 behavior for the whole process: graphs, v1 shapes, no deprecation warnings."""

from __future__ import annotations

import importlib.machinery
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType

from moxing.tf1 import environment
from moxing.tf1.graph import sparse_adam

#: Warnings that the API is old, which is what the script was written for.
_DEPRECATION_WARNINGS = (
    r"`tf\.layers\.\w+` is deprecated",
    r"`layer\.\w+` is deprecated",
    r"`tf\.nn\.rnn_cell\.\w+` is deprecated",
    r"`tf\.compat\.v1\.\w+` is deprecated",
    r"`Model\.state_updates` will be removed",
)


#: Whether variables are reference variables: `moxing run --ref_variables`.
_reference_variables = False


def use_reference_variables(value: bool) -> None:
    """Gives scripts the reference variables and the control flow of TensorFlow 1. Call it before `enable`.

    `mox.run` and `tf.estimator` use resource variables in any case.

    Example:
      >>> use_reference_variables(False)
    """
    global _reference_variables
    _reference_variables = value


def enable_on_import() -> None:
    """Enables TensorFlow 1 behavior: now if TensorFlow is imported, otherwise as soon as it is."""
    environment.prepare()
    ignore_deprecation_warnings()
    if "tensorflow" in sys.modules:
        enable()
    elif not any(isinstance(finder, TensorFlowFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, TensorFlowFinder())


def enable() -> None:
    """Switches TensorFlow, which must be imported, to what a TensorFlow 1 script expects.

    Resource variables and control flow v2 stay on: the step loop is built from them, and few scripts notice. For the
    others there is `use_reference_variables`.
    """
    import tensorflow.compat.v1 as tf
    from tensorflow.python.util import deprecation

    from moxing.tf1.graph import old_datasets, old_variables, variable_fetches

    tf.disable_eager_execution()
    tf.disable_v2_tensorshape()
    if _reference_variables:
        tf.disable_resource_variables()
        tf.disable_control_flow_v2()
    else:
        tf.enable_resource_variables()
        tf.enable_control_flow_v2()
    old_variables.install()
    old_datasets.install()
    deprecation._PRINT_DEPRECATION_WARNINGS = False
    sparse_adam.install()
    variable_fetches.install()


def ignore_deprecation_warnings() -> None:
    """Hides the Python warnings about the API of TensorFlow 1.

    Example:
      >>> with warnings.catch_warnings():
      ...   ignore_deprecation_warnings()
      ...   warnings.warn('`tf.layers.dense` is deprecated and will be removed', stacklevel=1)
    """
    for message in _DEPRECATION_WARNINGS:
        warnings.filterwarnings("ignore", message=message)


class TensorFlowFinder:
    """Enables TensorFlow 1 behavior when TensorFlow is first imported, whoever imports it."""

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
        enable()

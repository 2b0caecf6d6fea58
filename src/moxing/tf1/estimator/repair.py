"""Imports tensorflow-estimator 2.15 on TensorFlow 2.21, under whatever name it is imported first."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from moxing.tf1 import environment
from moxing.tf1.estimator import module_repairs, stand_ins

_PACKAGE = "tensorflow_estimator"
_EXPORT = f"{_PACKAGE}.python.estimator.estimator_export"
_TIME_SERIES_HEAD = f"{_PACKAGE}.python.estimator.canned.timeseries.head"

#: Modules of the package that import a stand-in. They are imported while the stand-ins are there.
_WITH_STAND_INS = ("estimator_lib", "tpu.tpu_estimator")


def load() -> ModuleType:
    """Imports the package and returns its TensorFlow 1 API, which was `tf.estimator`.

    Example:
      >>> load().ModeKeys.TRAIN
      'train'
    """
    install()
    return importlib.import_module(f"{_PACKAGE}._api.v1.estimator")


def install() -> None:
    """Repairs the package when it is imported. Calling it again changes nothing."""
    if not any(isinstance(finder, EstimatorFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, EstimatorFinder())


class EstimatorFinder:
    """Finds tensorflow-estimator where Python does, and loads it with its repairs."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _LOADERS:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _LOADERS[name](name, spec.loader.path)
        return spec


class _PackageLoader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        environment.import_tensorflow()
        with _stand_ins():
            super().exec_module(module)
            for name in _WITH_STAND_INS:
                _module(name)
        module_repairs.read_text_columns(_module("inputs.queues.feeding_functions"))
        module_repairs.know_batch_of_masks(_module("canned.rnn"))
        module_repairs.name_cells_as_before(_module("canned.rnn"))


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{_PACKAGE}.python.estimator.{name}")


class _ExportLoader(SourceFileLoader):
    """Replaces the decorator that registers names with TensorFlow's API and calls all of them deprecated."""

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["estimator_export"] = _Export


class _TimeSeriesHeadLoader(SourceFileLoader):
    """Few programs need the module: it is repaired when one imports it."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        module_repairs.let_metrics_change_shape(module)


_LOADERS: dict[str, type[SourceFileLoader]] = {
    _PACKAGE: _PackageLoader,
    _EXPORT: _ExportLoader,
    _TIME_SERIES_HEAD: _TimeSeriesHeadLoader,
}


class _Export:
    def __init__(self, *names: str, v1: Sequence[str] | None = None) -> None:
        pass

    def __call__(self, decorated: Any) -> Any:
        return decorated

    def export_constant(self, module_name: str, name: str) -> None:
        """Constants need no registration either."""


@contextmanager
def _stand_ins() -> Iterator[None]:
    """Serves the modules that TensorFlow lacks. What the package has imported keeps them; nobody else sees them."""
    added = {name: module for name, module in stand_ins.modules().items() if name not in sys.modules}
    sys.modules.update(added)
    try:
        yield
    finally:
        for name in added:
            del sys.modules[name]

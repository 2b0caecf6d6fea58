"""Prepares the import of TensorFlow: environment variables, start-up lines, the modules of legacy Keras."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from moxing.framework.util.terminal import flush

#: Read by TensorFlow when it is imported. Values that the user has set stay.
_BEFORE_IMPORT = {
    "TF_USE_LEGACY_KERAS": "1",
    "TF_ENABLE_ONEDNN_OPTS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}

# Lines that TensorFlow's C++ code writes to file descriptor 2 during the import, whatever the log level.
_START_UP_LINES = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog\(\)"
    rb"|[IW]\d{4} \d\d:\d\d:|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IW] "
    rb"|To enable the following instructions:"
    rb"|.*(Unable to register cu\w+ factory|computation_placer already registered|failed call to cuInit)"
)

_GPU_DEVICES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/kfd")

_LEGACY_LAYERS = "tf_keras.legacy_tf_layers"


def prepare() -> None:
    """Sets the environment variables that TensorFlow reads when it is imported. Call it before `import tensorflow`.

    Example:
      >>> prepare()
      >>> os.environ['TF_USE_LEGACY_KERAS']
      '1'
    """
    for name, value in _BEFORE_IMPORT.items():
        os.environ.setdefault(name, value)
    _alias_legacy_layers()


def _alias_legacy_layers() -> None:
    if not any(isinstance(finder, _LegacyLayersFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _LegacyLayersFinder())


def import_tensorflow() -> ModuleType:
    """Imports TensorFlow without its start-up lines on standard error.

    Set `TF_CPP_MIN_LOG_LEVEL=0` in the environment to see them.

    Example:
      >>> import_tensorflow().__name__
      'tensorflow'
    """
    if "tensorflow" in sys.modules:
        _alias_legacy_layers()
        return sys.modules["tensorflow"]
    prepare()
    with starting_up():
        return importlib.import_module("tensorflow")


@contextmanager
def starting_up() -> Iterator[None]:
    """Wraps the import of TensorFlow: drops its start-up lines, and defers the import of Keras until it is used.

    Example:
      >>> with starting_up():
      ...   import tensorflow
    """
    with without_start_up_lines(), _keras_deferred():
        yield
        _list_devices_without_gpu()


@contextmanager
def _keras_deferred() -> Iterator[None]:
    """Keeps TensorFlow from importing tf-keras, which it does for the SavedModel registry and can do without.

    This saves a fifth of the import time. Code that uses Keras imports it later.
    """
    finder = _DeferredKerasFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _DeferredKerasFinder:
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == "tf_keras" else None
        if spec is not None:
            # TensorFlow requires that it is found; loading it fails, which TensorFlow accepts.
            spec.loader = _DeferringLoader()
        return spec


class _DeferringLoader(Loader):
    def exec_module(self, module: ModuleType) -> None:
        raise ImportError("tf_keras is not imported while TensorFlow starts", name=module.__name__)


def _list_devices_without_gpu() -> None:
    """Lists the devices now on a machine without a GPU, about which TensorFlow writes a line to standard error.

    With a GPU this is left for later: a script may set CUDA_VISIBLE_DEVICES after it has imported TensorFlow.
    """
    if not any(os.path.exists(path) for path in _GPU_DEVICES):
        from tensorflow.python import pywrap_tfe

        pywrap_tfe.TF_ListPhysicalDevices()


@contextmanager
def without_start_up_lines() -> Iterator[None]:
    """Drops TensorFlow's start-up lines from standard error; other lines appear when the block ends.

    Example:
      >>> with without_start_up_lines():
      ...   pass
    """
    try:
        original = os.dup(2)
    except OSError:
        # The process has no standard error.
        yield
        return
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0":
        # The user wants to see them.
        os.close(original)
        yield
        return
    with tempfile.TemporaryFile() as captured:
        flush(sys.stderr)
        os.dup2(captured.fileno(), 2)
        succeeded = False
        try:
            yield
            succeeded = True
        finally:
            flush(sys.stderr)
            os.dup2(original, 2)
            os.close(original)
            captured.seek(0)
            for line in captured:
                if not (succeeded and _START_UP_LINES.match(line)):
                    os.write(2, line)


def missed_switches() -> list[str]:
    """Returns the variables that TensorFlow was imported without, as `NAME=value`.

    Example:
      >>> isinstance(missed_switches(), list)
      True
    """
    if "tensorflow" not in sys.modules:
        return []
    return [
        f"{name}={value}"
        for name, value in _BEFORE_IMPORT.items()
        if name not in os.environ and name != "TF_CPP_MIN_LOG_LEVEL"
    ]


class _LegacyLayersFinder:
    """Serves `tf_keras.legacy_tf_layers`, which `tf.layers` imports.

    The tf-keras wheel has the package as `tf_keras.src.legacy_tf_layers`; the public name is an alias.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != _LEGACY_LAYERS and not name.startswith(_LEGACY_LAYERS + "."):
            return None
        return importlib.util.spec_from_loader(name, _AliasLoader(name.replace("tf_keras.", "tf_keras.src.", 1)))


class _AliasLoader(Loader):
    """Gives a module a second name; both names are the same object."""

    def __init__(self, real_name: str) -> None:
        self._real_name = real_name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return importlib.import_module(self._real_name)

    def exec_module(self, module: ModuleType) -> None:
        # The module was already executed under its own name, which the import system has just overwritten.
        sys.modules[module.__spec__.name] = module  # type: ignore[union-attr]

"""What must be settled before TensorFlow is imported, and what is put right just after."""

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

#: Read by TensorFlow at import time, hence set before it. A value that the user chose stays.
_BEFORE_IMPORT = {
    "TF_USE_LEGACY_KERAS": "1",
    "TF_ENABLE_ONEDNN_OPTS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}

# What TensorFlow's C++ parts write to file descriptor 2 while they are imported, before the log level is heeded.
_START_UP_LINES = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog\(\)"
    rb"|[IW]\d{4} \d\d:\d\d:|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IW] "
    rb"|To enable the following instructions:"
    rb"|.*(Unable to register cu\w+ factory|computation_placer already registered|failed call to cuInit)"
)

_GPU_DEVICES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/kfd")

_LEGACY_LAYERS = "tf_keras.legacy_tf_layers"


def prepare() -> None:
    """Sets the switches that TensorFlow reads once, at import. Call it before `import tensorflow`.

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
    """Imports TensorFlow without the lines that it writes to standard error when it starts.

    `TF_CPP_MIN_LOG_LEVEL=0` in the environment shows them.

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
    """Surrounds the import of TensorFlow: its start-up lines are dropped, and Keras is left for when it is used.

    Example:
      >>> with starting_up():
      ...   import tensorflow
    """
    with start_up_lines_held(), _keras_deferred():
        yield
        _look_for_devices()


@contextmanager
def _keras_deferred() -> Iterator[None]:
    """TensorFlow imports tf-keras at its end, for the SavedModel registry, and goes on without it.

    That is a fifth of the time of the import. Whoever uses Keras imports it then.
    """
    finder = _NotNowFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _NotNowFinder:
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == "tf_keras" else None
        if spec is not None:
            # It can be found, which TensorFlow wants to see, but not loaded.
            spec.loader = _NotNowLoader()
        return spec


class _NotNowLoader(Loader):
    def exec_module(self, module: ModuleType) -> None:
        raise ImportError("it is not imported while TensorFlow starts", name=module.__name__)


def _look_for_devices() -> None:
    """On a machine without a GPU, has TensorFlow find that out now; it complains about it once, on standard error.

    With a GPU it is left for later: a script may still set CUDA_VISIBLE_DEVICES after it has imported TensorFlow.
    """
    if not any(os.path.exists(path) for path in _GPU_DEVICES):
        from tensorflow.python import pywrap_tfe

        pywrap_tfe.TF_ListPhysicalDevices()


@contextmanager
def start_up_lines_held() -> Iterator[None]:
    """Drops TensorFlow's start-up lines from standard error; all else that is written meanwhile appears at the end.

    Example:
      >>> with start_up_lines_held():
      ...   pass
    """
    try:
        original = os.dup(2)
    except OSError:
        # The process has no standard error.
        yield
        return
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0":
        # They were asked for.
        os.close(original)
        yield
        return
    with tempfile.TemporaryFile() as held:
        sys.stderr.flush()
        os.dup2(held.fileno(), 2)
        succeeded = False
        try:
            yield
            succeeded = True
        finally:
            sys.stderr.flush()
            os.dup2(original, 2)
            os.close(original)
            held.seek(0)
            for line in held:
                if not (succeeded and _START_UP_LINES.match(line)):
                    os.write(2, line)


def missed_switches() -> list[str]:
    """The switches that came too late, as `NAME=value`: TensorFlow was imported without them.

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
    """Serves `tf_keras.legacy_tf_layers`, which TensorFlow's `tf.layers` asks for.

    The tf-keras wheel ships the package as `tf_keras.src.legacy_tf_layers`, so the public name is an alias.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != _LEGACY_LAYERS and not name.startswith(_LEGACY_LAYERS + "."):
            return None
        return importlib.util.spec_from_loader(name, _AliasLoader(name.replace("tf_keras.", "tf_keras.src.", 1)))


class _AliasLoader(Loader):
    """Loads a module under a second name: both names are one object."""

    def __init__(self, real_name: str) -> None:
        self._real_name = real_name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return importlib.import_module(self._real_name)

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just overwritten the name; the module was executed under its own.
        sys.modules[module.__spec__.name] = module  # type: ignore[union-attr]

"""Patches TensorFlow itself to take the urls of `mox.file`, for code that does not run under `moxing run`.

`mox.file.shift('tf', 'mox')` calls `install`. User modules under `moxing run` need no patch: the facade serves them
the modules of this package.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from moxing.tf1 import environment

#: The replaced functions and classes: module, name, original.
_replaced: list[tuple[ModuleType, str, Any]] = []


def install() -> None:
    """Makes `tf.gfile` and `tf.io.gfile` take urls. Calling it again changes nothing."""
    if _replaced:
        return
    tensorflow = environment.import_tensorflow()
    # Imported before the originals are replaced, which they call for local paths.
    from moxing.tf1.files import gfile, io_gfile

    modules = [
        (tensorflow.compat.v1.gfile, gfile),
        (tensorflow.compat.v1.io.gfile, io_gfile),
        (tensorflow.compat.v2.io.gfile, io_gfile),
        (tensorflow.io.gfile, io_gfile),
    ]
    for theirs, ours in modules:
        for name in [name for name in dir(theirs) if not name.startswith("_") and hasattr(ours, name)]:
            _replaced.append((theirs, name, getattr(theirs, name)))
            setattr(theirs, name, getattr(ours, name))


def uninstall() -> None:
    """Restores TensorFlow's own functions and classes."""
    while _replaced:
        module, name, value = _replaced.pop()
        setattr(module, name, value)


def install_in_checkpoint_functions() -> None:
    """Makes `tf.train.latest_checkpoint` and similar functions find checkpoints at urls."""
    from tensorflow.python.checkpoint import checkpoint_management

    from moxing.tf1.files import file_io

    checkpoint_management.file_io = file_io

"""`mox.file.shift('tf', 'mox')`: TensorFlow's own `tf.gfile` and `tf.io.gfile` take the urls of `mox.file`.

Scripts under `moxing run` have that without asking, see `facade`; this is for all other code of the process.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from moxing.tf1 import environment

#: What was there before, by module and name.
_replaced: list[tuple[ModuleType, str, Any]] = []


def install() -> None:
    """From now on the functions and classes of the two modules take urls; again, it changes nothing."""
    if _replaced:
        return
    tensorflow = environment.import_tensorflow()
    # They keep TensorFlow's own functions for local paths, so they are imported before those are replaced.
    from moxing.tf1 import gfile, io_gfile

    places = [
        (tensorflow.compat.v1.gfile, gfile),
        (tensorflow.compat.v1.io.gfile, io_gfile),
        (tensorflow.compat.v2.io.gfile, io_gfile),
        (tensorflow.io.gfile, io_gfile),
    ]
    for theirs, ours in places:
        for name in [name for name in dir(theirs) if not name.startswith("_") and hasattr(ours, name)]:
            _replaced.append((theirs, name, getattr(theirs, name)))
            setattr(theirs, name, getattr(ours, name))


def uninstall() -> None:
    """Everything as before."""
    while _replaced:
        module, name, value = _replaced.pop()
        setattr(module, name, value)

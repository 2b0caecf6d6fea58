"""The class names of a run's datasets.

`mox.run` opens one `ClassNames` around `input_fn`. Datasets that know their class names set them; the run compares them
with those of the checkpoint and writes them to `labels.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import tensorflow.compat.v1 as tf


class ClassNames:
    """The class names of a run.

    Attributes:
      names: the class names by label, or None if no dataset knows them.

    Example:
      >>> classes = ClassNames()
      >>> classes.add({0: 'cat', 1: 'dog'})
      >>> classes.names
      {0: 'cat', 1: 'dog'}
    """

    def __init__(self) -> None:
        self.names: dict[int, str] | None = None

    def add(self, names: Mapping[int, str]) -> None:
        """Adds the class names of one dataset; warns if another dataset numbers its classes differently."""
        if self.names is not None and self.names != dict(names):
            tf.logging.warning(
                "The datasets of input_fn number their classes differently: %s and %s. Give them the same labels.txt.",
                self.names,
                dict(names),
            )
            return
        self.names = dict(names)


_current: ContextVar[ClassNames | None] = ContextVar("moxing_class_names", default=None)


@contextmanager
def open_class_names() -> Iterator[ClassNames]:
    """Opens the class names of a run: datasets that are created inside the `with` block add theirs."""
    classes = ClassNames()
    token = _current.set(classes)
    try:
        yield classes
    finally:
        _current.reset(token)


def current_class_names() -> ClassNames:
    """Returns the class names of the run that is being built, or a new object."""
    return _current.get() or ClassNames()

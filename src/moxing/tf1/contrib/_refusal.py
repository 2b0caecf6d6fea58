"""Names that can be imported and subclassed, and that say what does their work today when they are called."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Refusing(type):
    """A class of which no instance can be made. Its attributes refuse as well."""

    _moxing_path: str
    _moxing_instead: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{cls._moxing_path} is not available: {cls._moxing_instead}.")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{cls._moxing_path} has no attribute {name!r}")
        return refusal(f"{cls._moxing_path}.{name}", cls._moxing_instead)


def refusal(path: str, instead: str) -> Any:
    """Returns an object that raises an error when it is called.

    Args:
      path: its name in TensorFlow 1, for the message.
      instead: what does its work today.

    Example:
      >>> gan_model = refusal('tf.contrib.gan.gan_model', 'use the package tensorflow-gan')
      >>> gan_model(1)
      Traceback (most recent call last):
      NotImplementedError: tf.contrib.gan.gan_model is not available: use the package tensorflow-gan.
    """
    name = path.rpartition(".")[2]
    return _Refusing(name, (), {"_moxing_path": path, "_moxing_instead": instead})


def module(name: str, path: str, instead: str) -> ModuleType:
    """Returns a module in which every public name refuses.

    Args:
      name: the name to import it under.
      path: its name in TensorFlow 1.
      instead: what does its work today.

    Example:
      >>> module('gan', 'tf.contrib.gan', 'use the package tensorflow-gan').gan_loss.__name__
      'gan_loss'
    """
    made = ModuleType(name, f"`{path}` refuses every call: {instead}.")
    made.__dict__["__path__"] = []

    def find(wanted: str) -> Any:
        if wanted.startswith("_"):
            raise AttributeError(f"module {path!r} has no attribute {wanted!r}")
        below = sys.modules.get(f"{name}.{wanted}")
        value = refusal(f"{path}.{wanted}", instead) if below is None else below
        setattr(made, wanted, value)
        return value

    made.__dict__["__getattr__"] = find
    return made

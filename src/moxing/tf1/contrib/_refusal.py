"""Names that can be imported and subclassed, and that say what does their work today when they are called."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

from moxing.tf1.contrib import _lazy


class _Refusing(type):
    """A class of which no instance can be made. Its attributes refuse as well."""

    _moxing_path: str
    _moxing_instead: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
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


class Part(NamedTuple):
    """A part of `tf.contrib` that is a table.

    Attributes:
      instead: what does the work of all other names today.
      names: the names that are served, and where they are (`_lazy`).
      inside: names of modules in the original part; all are this part itself.
    """

    instead: str
    names: Mapping[str, str] = {}
    inside: str = ""


def module(name: str, path: str, part: Part) -> ModuleType:
    """Returns a module that serves the names of a part; every other public name refuses when it is called.

    Args:
      name: the name to import it under.
      path: its name in TensorFlow 1.
      part: its table.

    Example:
      >>> module('gan', 'tf.contrib.gan', Part('use the package tensorflow-gan')).gan_loss.__name__
      'gan_loss'
    """
    made = ModuleType(name, f"`{path}`. Names that are not served refuse when they are called: {part.instead}.")
    made.__dict__["__path__"] = []
    made.__dict__["__all__"] = sorted(part.names)
    inside = frozenset(part.inside.split())

    def find(wanted: str) -> Any:
        if wanted in part.names:
            value = _lazy.resolve(part.names[wanted])
        elif wanted in inside:
            value = made
        elif wanted.startswith("_"):
            raise AttributeError(f"module {path!r} has no attribute {wanted!r}")
        else:
            value = refusal(f"{path}.{wanted}", part.instead)
        setattr(made, wanted, value)
        return value

    made.__dict__["__getattr__"] = find
    return made

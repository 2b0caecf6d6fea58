"""Looks names up as a user module would: by an import statement in its builtins, then attribute by attribute.

`moxing check` uses it. It has no list of names of its own: what it says is what the facade does.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import io
import logging
import sys
import typing
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from moxing.tf1 import environment
from moxing.tf1.era import module_view, old_stdlib
from moxing.tf1.user import facade, import_views, user_modules

#: The provider of the standard library.
PYTHON = "Python"

#: Packages by their import names, as people call them.
_PROVIDERS = {
    "keras": "Keras 3",
    "moxing": "MoXing",
    "numpy": "NumPy",
    "pandas": "pandas",
    "scipy": "SciPy",
    "sklearn": "scikit-learn",
    "tensorflow": "TensorFlow",
    "tensorflow_estimator": "tensorflow-estimator",
    "tf_keras": "tf-keras",
    "tf_slim": "tf-slim",
}


@dataclass(frozen=True)
class Origin:
    """Where a name comes from: `import module` or `from module import item`, and attributes of that.

    Attributes:
      module: the module in the import statement.
      item: the name after `from module import`, or empty.
      attributes: the attributes that follow.
    """

    module: str
    item: str = ""
    attributes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join(filter(None, (self.module, self.item, *self.attributes)))

    def attribute(self, *names: str) -> Origin:
        """Returns the origin of an attribute of this one."""
        return Origin(self.module, self.item, (*self.attributes, *names))


@dataclass(frozen=True)
class Resolution:
    """What a user module gets for an origin.

    Attributes:
      name: the part of the dotted name that was judged. Attributes of objects that are neither modules nor classes are
        not judged.
      value: the object; None if it is missing.
      provider: the package that serves it, such as `TensorFlow` or `MoXing`; empty if it is missing.
      problem: why it is missing and what to do; empty if it is served.
      refused: whether it exists, but every call of it raises an error.
    """

    name: str
    value: Any = None
    provider: str = ""
    problem: str = ""
    refused: bool = False


def resolve(name: str | Origin) -> Resolution:
    """Returns what a user module gets for a name.

    Args:
      name: an origin, or a dotted name below `tf` or `tensorflow`.

    Example:
      >>> resolve('tf.train.Saver').provider
      'TensorFlow'
      >>> resolve('tf.contrib.bayesflow.entropy').problem.partition('.')[0]
      'tf'
      >>> resolve('tf.contrib.quantize.create_eval_graph').refused
      True
    """
    if isinstance(name, Origin):
        return _resolve(name)
    head, *attributes = name.split(".")
    return _resolve(Origin("tensorflow" if head == "tf" else head, "", tuple(attributes)))


@functools.cache
def _resolve(origin: Origin) -> Resolution:
    _prepare()
    shown = ".".join(filter(None, (origin.module, origin.item)))
    imported, problem = _quietly(lambda: _import(origin.module, origin.item))
    if problem:
        return Resolution(shown, problem=problem)
    owner, value = None, imported
    for attribute in origin.attributes:
        if not isinstance(value, ModuleType | type):
            break
        owner, shown = value, f"{shown}.{attribute}"
        value, problem = _quietly(functools.partial(getattr, value, attribute))
        if problem:
            return Resolution(shown, problem=problem)
    advice = _refusal(value)
    if owner is None and origin.item:
        owner, _ = _quietly(lambda: _import(origin.module, ""))
    return Resolution(shown, value, "" if advice else _provider(value, owner, origin), advice, bool(advice))


@functools.cache
def _prepare() -> None:
    environment.import_tensorflow()
    import_views.install()


def _import(module: str, item: str) -> Any:
    """Executes the import statement in a module with the builtins of user modules."""
    parts = [*module.split("."), *filter(None, [item])]
    if not all(part.isidentifier() for part in parts):
        raise ImportError(f"{'.'.join(parts)!r} is not the name of a module")
    own: dict[str, Any] = {"__builtins__": vars(user_modules.user_builtins()), "__name__": "__moxing_check__"}
    if item:
        exec(f"from {module} import {item} as found", own)
    elif "." in module:
        exec(f"import {module} as found", own)
    else:
        exec(f"import {module}\nfound = {module}", own)
    return own["found"]


def _quietly(look_up: Callable[[], Any]) -> tuple[Any, str]:
    """Returns the value, or None and the error. Old modules warn, log and print when they are used."""
    level = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            return look_up(), ""
    except (AttributeError, ImportError) as error:
        return None, str(error)
    except Exception as error:  # whatever a library raises while it is imported
        return None, f"{type(error).__name__}: {error}"
    finally:
        logging.disable(level)


def _refusal(value: Any) -> str:
    """Returns the error that every call of `value` raises; empty if calls may succeed."""
    function = _called(value)
    if function is None or not function.__module__.startswith("moxing.") or not _never_returns(function):
        return ""
    required = [
        one
        for one in inspect.signature(function).parameters.values()
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    # The class that is called, or the new instance, is passed by Python.
    count = len(required) - (function is not value)
    try:
        value(*[None] * count)
    except Exception as error:
        return str(error) or inspect.getdoc(value) or type(error).__name__
    return ""


def _called(value: Any) -> Any:
    """Returns the function that a call of `value` runs, if it is written in Python and decides alone what happens."""
    if inspect.isfunction(value):
        return value
    if isinstance(value, type):
        meta = vars(type(value)).get("__call__")
        function = meta if inspect.isfunction(meta) else vars(value).get("__init__")
        return function if inspect.isfunction(function) else None
    return None


def _never_returns(function: Any) -> bool:
    """Returns True if a function says so, by its result `NoReturn`, or has no way to return."""
    if function.__annotations__.get("return") in ("NoReturn", typing.NoReturn, "Never", typing.Never):
        return True
    return not any(step.opname.startswith(("RETURN", "YIELD")) for step in dis.get_instructions(function))


def _provider(value: Any, owner: Any, origin: Origin) -> str:
    """Returns the package that serves `value`, which was found in `owner`."""
    if origin.module in old_stdlib.RENAMED_MODULES:
        return "MoXing"
    if isinstance(value, ModuleType):
        return _known_as(value.__name__)
    if isinstance(owner, module_view.ModuleView):
        real, old = owner.__dict__["_moxing_view"]
        if str(origin).rpartition(".")[2] in old:
            return "MoXing"
        return _known_as(real.__name__)
    for candidate in (value, type(value), owner):
        module = candidate.__name__ if isinstance(candidate, ModuleType) else getattr(candidate, "__module__", None)
        if isinstance(module, str) and module.partition(".")[0] in _PROVIDERS:
            return _known_as(module)
    return _known_as(origin.module)


def _known_as(module: str) -> str:
    head = module.partition(".")[0]
    return _PROVIDERS.get(head) or (PYTHON if head in sys.stdlib_module_names else head)


def is_served_here(module: str) -> bool:
    """Returns True if import statements of user modules get `module` from the facade.

    Example:
      >>> is_served_here('tensorflow.contrib.slim'), is_served_here('numpy')
      (True, False)
    """
    return module.partition(".")[0] in facade.HEADS

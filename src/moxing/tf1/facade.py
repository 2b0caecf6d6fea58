"""The `tensorflow` that user modules see: the TensorFlow 1 API, with `contrib`, `flags` and the rest in place."""

from __future__ import annotations

import difflib
import functools
import importlib
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from moxing.tf1 import environment, legacy_keras

#: Import names of TensorFlow 1 and the modules that serve them; the longest prefix counts.
_SERVED: dict[str, str] = {
    "tensorflow.contrib": "moxing.tf1.contrib",
    "tensorflow.examples": "moxing.tf1.examples",
    "tensorflow.flags": "moxing.tf1.flags",
    "tensorflow.app": "moxing.tf1.app",
    "tensorflow.app.flags": "moxing.tf1.flags",
    "tensorflow.gfile": "moxing.tf1.gfile",
    "tensorflow.io.gfile": "moxing.tf1.io_gfile",
    "tensorflow.python.lib.io.file_io": "moxing.tf1.file_io",
    "tensorflow.python.platform.flags": "moxing.tf1.flags",
    "tensorflow.python.platform.app": "moxing.tf1.app",
    "tensorflow.python.platform.gfile": "moxing.tf1.gfile",
    "tensorflow.compat.v2": "tensorflow",
    **legacy_keras.MODULES,
}

#: Parts of TensorFlow 1 that today's TensorFlow lacks and that are not served here.
_GONE = {
    "estimator": "tf.estimator was taken out of TensorFlow and is not part of this version; mox.run does its work.",
}

#: Top-level names that are served here.
HEADS = frozenset(name.partition(".")[0] for name in _SERVED)

# Where a name may lead back to the facade itself: code of the 1.13 time imports it this way.
_ALIAS = "tensorflow.compat.v1"


class FacadeModule(ModuleType):
    """A module whose names come from the table above, else from the modules in `bases`, and stay once resolved."""

    def __init__(self, name: str, bases: Sequence[ModuleType]) -> None:
        super().__init__(name, bases[0].__doc__)
        own = self.__dict__
        for key in ("__file__", "__path__", "__spec__", "__loader__", "__package__", "__version__"):
            for base in reversed(bases):
                if hasattr(base, key):
                    own[key] = getattr(base, key)
                    break
        own["_moxing_bases"] = tuple(bases)
        # In the module and not in the class: names that were found once are then read at the speed of any module.
        own["__getattr__"] = self._find

    def _find(self, name: str) -> Any:
        own = self.__dict__
        dotted = f"{own['__name__']}.{name}"
        if name == "__all__":
            return [entry for entry in dir(self) if not entry.startswith("_")]
        if dotted in _served_and_parents():
            value: Any = module(dotted)
        else:
            value = self._from_bases(name)
        own[name] = value
        return value

    def _from_bases(self, name: str) -> Any:
        for base in self.__dict__["_moxing_bases"]:
            try:
                return getattr(base, name)
            except AttributeError:
                continue
        own_name = self.__dict__["__name__"]
        if name in _GONE:
            raise AttributeError(f"module {own_name!r} has no attribute {name!r}: {_GONE[name]}", name=name)
        near = difflib.get_close_matches(name, dir(self), n=3)
        hint = f" The nearest names: {', '.join(near)}." if near else ""
        raise AttributeError(
            f"module {own_name!r} has no attribute {name!r} in the TensorFlow 1 API.{hint}", name=name, obj=self
        )

    def __setattr__(self, name: str, value: Any) -> None:
        # What a script changes, the libraries that use the same module see too, as ever.
        setattr(self.__dict__["_moxing_bases"][0], name, value)
        self.__dict__[name] = value

    def __dir__(self) -> Iterable[str]:
        own = self.__dict__
        below = own["__name__"] + "."
        served = {name[len(below) :].partition(".")[0] for name in _SERVED if name.startswith(below)}
        return sorted(served.union(*(dir(base) for base in own["_moxing_bases"])))


def serve(name: str, module_name: str) -> None:
    """Adds an import name to those that user modules get from us, such as `tensorflow.estimator`.

    Example:
      >>> serve('tensorflow.examples', 'moxing.tf1.examples')
    """
    _SERVED[name] = module_name
    _served_and_parents.cache_clear()
    module.cache_clear()


def import_name(name: str, fromlist: Sequence[str] = ()) -> ModuleType:
    """What an import statement of a user module gets for a name below `tensorflow`, as `__import__` returns it.

    Args:
      name: the dotted name in the statement.
      fromlist: the names after `import` in `from name import ...`.

    Returns:
      The top module for `import a.b.c`; the module `name` itself for `from name import ...`.

    Example:
      >>> import_name('tensorflow.compat').__name__
      'tensorflow'
    """
    imported = module(name)
    if not fromlist:
        return module(name.partition(".")[0])
    for item in fromlist:
        if item != "*" and not hasattr(imported, item):
            _import_child(imported, name, item)
    return imported


@functools.cache
def module(name: str) -> ModuleType:
    """The module that user code gets under the name `name`.

    Example:
      >>> module('tensorflow.flags').__name__
      'moxing.tf1.flags'
    """
    if name == _ALIAS or name.startswith(_ALIAS + "."):
        return module("tensorflow" + name[len(_ALIAS) :])
    if name == "tensorflow":
        real = environment.import_tensorflow()
        from moxing.tf1 import remote_files

        remote_files.serve_checkpoint_functions()
        return FacadeModule(name, [real.compat.v1, real])
    served = legacy_keras.module_name(name, _SERVED)
    base = _import(served, name) if served is not None else _v1_module(name)
    # A package with other served names below it must show those, not its own.
    return FacadeModule(name, [base]) if name in _parents() else base


def _import_child(parent: ModuleType, name: str, item: str) -> None:
    child = f"{name}.{item}"
    try:
        value = module(child)
    except ModuleNotFoundError as error:
        if error.name != child:
            raise
        # Say what the parent says about it: the attribute error lists what there is.
        try:
            getattr(parent, item)
        except AttributeError as missing:
            raise ImportError(f"cannot import name {item!r} from {name!r}: {missing}", name=name) from None
        return
    vars(parent).setdefault(item, value)


def _import(target: str, name: str) -> ModuleType:
    environment.import_tensorflow()
    try:
        imported = importlib.import_module(target)
    except ModuleNotFoundError as error:
        if error.name is None or not (target == error.name or target.startswith(error.name + ".")):
            raise
        imported = _attribute(target, name)
    if target.startswith("tf_keras"):
        legacy_keras.install_update_recorder()
    return imported


def _attribute(target: str, name: str) -> ModuleType:
    """A module that is an attribute of its package, but no file below it."""
    package, _, last = target.rpartition(".")
    hint = ""
    try:
        value = getattr(importlib.import_module(package), last)
        if isinstance(value, ModuleType):
            return value
    except (ImportError, AttributeError) as error:
        hint = f": {error}"
    raise ModuleNotFoundError(f"No module named {name!r}{hint}", name=name)


def _v1_module(name: str) -> ModuleType:
    value: Any = environment.import_tensorflow().compat.v1
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
        if not isinstance(value, ModuleType):
            return importlib.import_module(name)
    return value


@functools.lru_cache(maxsize=1)
def _served_and_parents() -> frozenset[str]:
    return frozenset({*_SERVED, *_parents(), _ALIAS})


def _parents() -> frozenset[str]:
    return _parents_of(tuple(_SERVED))


@functools.lru_cache(maxsize=1)
def _parents_of(names: tuple[str, ...]) -> frozenset[str]:
    found: set[str] = set()
    for name in (*names, _ALIAS):
        parent = name.rpartition(".")[0]
        while parent:
            found.add(parent)
            parent = parent.rpartition(".")[0]
    return frozenset(found)

"""The `tensorflow` that user modules see: the TensorFlow 1 API, with `contrib`, `flags` and the other lost parts."""

from __future__ import annotations

import difflib
import functools
import importlib
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from moxing.tf1 import environment
from moxing.tf1.contrib import _lazy, _slim_repairs
from moxing.tf1.files import gfile_shift
from moxing.tf1.graph import keras_layers
from moxing.tf1.user import keras_modules
from moxing.tf1.user.names import private_paths, variable_values

#: Estimators on MoXing's training loop. Imported by its name: it is above this package.
_ESTIMATOR = "moxing.tensorflow.estimator"

#: Import names of TensorFlow 1 and the modules that serve them. The longest prefix counts.
_SERVED: dict[str, str] = {
    "tensorflow.contrib": "moxing.tf1.contrib",
    "tensorflow.examples": "moxing.tf1.examples",
    "tensorflow.flags": "moxing.tf1.user.flags",
    "tensorflow.app": "moxing.tf1.user.app",
    "tensorflow.app.flags": "moxing.tf1.user.flags",
    "tensorflow.gfile": "moxing.tf1.files.gfile",
    "tensorflow.io.gfile": "moxing.tf1.files.io_gfile",
    "tensorflow.python.lib.io.file_io": "moxing.tf1.files.file_io",
    "tensorflow.python.platform.flags": "moxing.tf1.user.flags",
    "tensorflow.python.platform.app": "moxing.tf1.user.app",
    "tensorflow.python.platform.gfile": "moxing.tf1.files.gfile",
    "tensorflow.compat.v2": "tensorflow",
    "tensorflow.estimator": _ESTIMATOR,
    "tensorflow.python.estimator": "tensorflow_estimator.python.estimator",
    "tensorflow_estimator": "tensorflow_estimator",
    "tf_slim": "tf_slim",
    **keras_modules.MODULES,
    **private_paths.MODULES,
}

#: Modules with functions that replace TensorFlow's own in user modules.
_REPLACED = {
    "tensorflow": "moxing.tf1.user.behavior",
    "tensorflow.io": "moxing.tf1.user.names.parsing",
    "tensorflow.nn": "moxing.tf1.user.names.losses_before_1_0",
    "tensorflow.train": "moxing.tf1.user.names.input_producers",
}

# Another name of the facade itself: code of the time of TensorFlow 1.13 imports it this way.
_ALIAS = "tensorflow.compat.v1"

#: Top-level packages that are served here.
HEADS = frozenset(name.partition(".")[0] for name in _SERVED)

#: Modules that are shown with other names than their own, and packages that have served names below them.
_PARENTS = frozenset(
    ".".join(parts[:length])
    for parts in (name.split(".") for name in (*_SERVED, *private_paths.NAMES, _ALIAS))
    for length in range(1, len(parts))
).union(_REPLACED, private_paths.NAMES)


class FacadeModule(ModuleType):
    """A module whose names come from `_SERVED`, `private_paths` or else `bases`. A name that was found is stored.

    Args:
      name: its name.
      bases: the modules to search, in this order.
    """

    def __init__(self, name: str, bases: Sequence[ModuleType]) -> None:
        super().__init__(name, bases[0].__doc__)
        own = self.__dict__
        for key in ("__file__", "__path__", "__spec__", "__loader__", "__package__", "__version__"):
            for base in reversed(bases):
                if hasattr(base, key):
                    own[key] = getattr(base, key)
                    break
        own["_moxing_bases"] = tuple(bases)
        # In the module and not in the class, so that stored names are read as fast as in any module.
        own["__getattr__"] = self._find

    def _find(self, name: str) -> Any:
        own = self.__dict__
        dotted = f"{own['__name__']}.{name}"
        if name == "__all__":
            return [entry for entry in dir(self) if not entry.startswith("_")]
        if dotted in _SERVED or dotted in _PARENTS or dotted == _ALIAS:
            value: Any = module(dotted)
        elif (place := private_paths.location(own["__name__"], name)) is not None:
            value = self._at(place, name)
        else:
            value = self._from_bases(name)
        own[name] = value
        return value

    def _at(self, place: str, name: str) -> Any:
        try:
            return _lazy.resolve(place)
        except AttributeError:
            return self._from_bases(name)

    def _from_bases(self, name: str) -> Any:
        for base in self.__dict__["_moxing_bases"]:
            try:
                return getattr(base, name)
            except AttributeError:
                continue
        own_name = self.__dict__["__name__"]
        near = difflib.get_close_matches(name, dir(self), n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise AttributeError(
            f"module {own_name!r} has no attribute {name!r} in the TensorFlow 1 API.{hint}", name=name, obj=self
        )

    def __setattr__(self, name: str, value: Any) -> None:
        # Libraries that use the same module see what a script changes.
        setattr(self.__dict__["_moxing_bases"][0], name, value)
        self.__dict__[name] = value

    def __dir__(self) -> Iterable[str]:
        own = self.__dict__
        below = own["__name__"] + "."
        served = {name[len(below) :].partition(".")[0] for name in _SERVED if name.startswith(below)}
        moved = private_paths.NAMES.get(own["__name__"], ())
        return sorted(served.union(moved, *(dir(base) for base in own["_moxing_bases"])))


def import_name(name: str, fromlist: Sequence[str] = ()) -> ModuleType:
    """Returns what `__import__` returns for a name below `tensorflow` in a user module.

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
    """Returns the module that user code gets under the name `name`.

    Example:
      >>> module('tensorflow.flags').__name__
      'moxing.tf1.user.flags'
    """
    if name == _ALIAS or name.startswith(_ALIAS + "."):
        return module("tensorflow" + name[len(_ALIAS) :])
    advice = private_paths.gone(name)
    if advice is not None:
        raise ModuleNotFoundError(f"No module named {name!r}: {advice}.", name=name)
    if name == "tensorflow":
        real = environment.import_tensorflow()
        gfile_shift.install_in_checkpoint_functions()
        variable_values.install()
        shown: ModuleType = FacadeModule(name, [real.compat.v1, real])
    else:
        served = keras_modules.module_name(name, _SERVED)
        base = _import(served, name) if served is not None else _v1_module(name)
        # A package with served names below it must show these instead of its own.
        shown = FacadeModule(name, [base]) if name in _PARENTS else base
    if name in _REPLACED:
        own = importlib.import_module(_REPLACED[name])
        vars(shown).update({entry: getattr(own, entry) for entry in own.__all__})
    return shown


def _import_child(parent: ModuleType, name: str, item: str) -> None:
    child = f"{name}.{item}"
    try:
        value = module(child)
    except ModuleNotFoundError as error:
        if error.name != child or private_paths.gone(child) is not None:
            raise
        # Use the message of the attribute error, which suggests names that exist.
        try:
            getattr(parent, item)
        except AttributeError as missing:
            raise ImportError(f"cannot import name {item!r} from {name!r}: {missing}", name=name) from None
        return
    vars(parent).setdefault(item, value)


def _import(target: str, name: str) -> ModuleType:
    environment.import_tensorflow()
    if target.startswith("tensorflow_estimator"):
        importlib.import_module(_ESTIMATOR)
    if target.partition(".")[0] == "tf_slim":
        _slim_repairs.load()
    try:
        imported = importlib.import_module(target)
    except ModuleNotFoundError as error:
        if error.name is None or not (target == error.name or target.startswith(error.name + ".")):
            raise
        imported = _attribute(target, name)
    if target.startswith("tf_keras"):
        keras_layers.install_update_recorder()
        keras_layers.install_graph_seeds()
    return imported


def _attribute(target: str, name: str) -> ModuleType:
    """Returns a module that is an attribute of its package without being a file in it."""
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

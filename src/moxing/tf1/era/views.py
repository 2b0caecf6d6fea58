"""Decides which modules user code sees with the names of 2018, and under which old names modules are found."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from types import ModuleType

from moxing.tf1.era import module_view, old_libraries, old_numpy, old_pandas, old_stdlib
from moxing.tf1.era.module_view import Names

#: The modules that user code sees as a view, each with the function that returns the names to add.
_VIEWS: dict[str, Callable[[], Names]] = {
    **old_stdlib.NAMES,
    **old_libraries.NAMES,
    "numpy": old_numpy.names,
    "numpy.lib": old_numpy.lib_names,
    "numpy.random": old_numpy.random_names,
}

#: The modules that user code sees replaced by another module.
_REPLACED: dict[str, Callable[[], ModuleType]] = {}

#: Modules whose values change while a program runs, so nothing may be copied from them.
_LIVE = frozenset({"sys"})

#: Called once, when a user module first imports the package.
_ON_IMPORT: dict[str, Callable[[], None]] = {"numpy": old_numpy.install, "pandas": old_pandas.install}


def add_view(name: str, names: Callable[[], Names]) -> None:
    """Shows user modules more names in the module `name`.

    Args:
      name: the module.
      names: returns the names to add.

    Example:
      >>> import json
      >>> add_view('json', lambda: {'read': lambda: json.loads})
      >>> view(json).read('1')
      1
    """
    _VIEWS[name] = names


def replace(name: str, make: Callable[[], ModuleType]) -> None:
    """Shows user modules another module in place of the module `name`.

    Example:
      >>> import wave
      >>> replace('wave', lambda: ModuleType('waves'))
      >>> view(wave).__name__
      'waves'
    """
    _REPLACED[name] = make


def on_import(package: str, action: Callable[[], None]) -> None:
    """Calls `action` once, when a user module first imports `package`.

    Example:
      >>> on_import('a_package_of_the_user', lambda: None)
    """
    _ON_IMPORT[package] = action


def view(module: ModuleType) -> ModuleType:
    """Returns the module as user code sees it: with the names of 2018, or unchanged.

    Example:
      >>> import time
      >>> view(time).clock is time.perf_counter
      True
    """
    # sys.modules may hold any object, which then has no name to go by.
    name = module.__name__ if isinstance(module, ModuleType) else ""
    action = _ON_IMPORT.pop(name.partition(".")[0], None)
    if action is not None:
        action()
    if name in _REPLACED:
        return _REPLACED[name]()
    return _view(name) if name in _VIEWS and sys.modules.get(name) is module else module


@functools.cache
def _view(name: str) -> ModuleType:
    make = module_view.live_view if name in _LIVE else module_view.ModuleView
    # Submodules with a view of their own, such as `importlib.util` after `import importlib.util`. They are imported
    # when a program uses them.
    children = {
        child.rpartition(".")[2]: functools.partial(_child, child)
        for child in _VIEWS
        if child.rpartition(".")[0] == name
    }
    return make(sys.modules[name], {**_VIEWS[name](), **children})


def _child(name: str) -> ModuleType:
    importlib.import_module(name)
    return _view(name)


@functools.cache
def old_module(name: str) -> ModuleType | None:
    """Returns the module that Python 2 or a library of 2018 called `name`, or None if there was no such module.

    Example:
      >>> old_module('cPickle').__name__
      'pickle'
    """
    if name not in old_stdlib.RENAMED_MODULES:
        found = old_libraries.old_module(name)
        if found is not None:
            module_view.note_once(f"module {name}", found.__name__)
        return found
    parts = old_stdlib.RENAMED_MODULES[name]
    module_view.note_once(f"module {name}", " and ".join(parts))
    if len(parts) == 1:
        return view(importlib.import_module(parts[0]))
    merged = ModuleType(name)
    for part in parts:
        vars(merged).update({key: value for key, value in vars(importlib.import_module(part)).items() if key[0] != "_"})
    return merged

"""Recognizes the modules of the user and serves their import statements.

For an import statement, CPython calls the `__import__` in the `__builtins__` of the module that executes it. User
modules get a private copy of the builtins, with an `__import__` that serves the TensorFlow 1 facade and the names of
2018. Libraries keep the real modules. No source is rewritten.
"""

from __future__ import annotations
import __future__

import builtins
import functools
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Collection, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from moxing.tf1.era import old_libraries, python2, python2_division, python2_source, views
from moxing.tf1.era.user_only_method import USER_MARK
from moxing.tf1.user import facade

#: Packages that are never the user's, wherever they are installed.
_LIBRARIES = frozenset({"moxing", "tensorflow", "tf_keras"})

#: Directories of the standard library. Computed before the finder is installed: on Python 3.13 `sysconfig` imports a
#: module for it, which would enter the finder again.
_STANDARD_LIBRARY = tuple({os.path.realpath(sysconfig.get_path(key)) for key in ("stdlib", "platstdlib")})


class UserSourceLoader(SourceFileLoader):
    """Loads a source file as a user module: the same code, with the builtins of user modules."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        # Not in exec_module, whose frame would appear in the tracebacks of failing imports.
        module = ModuleType(spec.name)
        module.__dict__["__builtins__"] = vars(user_builtins())
        return module

    def get_code(self, fullname: str) -> CodeType | None:
        if python2_source.enabled():
            # Neither read nor write the cached bytecode, which is that of the file as it is.
            code: CodeType | None = self.source_to_code(self.get_data(self.path), self.path)
        else:
            code = super().get_code(fullname)
        if code is not None:
            python2.note_builtins(code)
        return code

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        if python2_source.enabled():
            return python2_source.compile_python2(data, path)
        try:
            return super().source_to_code(data, path, _optimize=_optimize)
        except SyntaxError as error:
            advice = python2.explain(error)
            if advice is not None:
                error.add_note(advice)
            raise


class UserModuleFinder:
    """Finds modules as Python does, and loads user modules with `UserSourceLoader`.

    Args:
      legacy: installed packages that count as user modules.
    """

    def __init__(self, legacy: Collection[str] = ()) -> None:
        self._legacy = frozenset(legacy)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = self._find_with_others(name, path, target)
        # Extension modules, frozen modules and other loaders stay as they are.
        loader = None if spec is None else spec.loader
        is_legacy = name.partition(".")[0] in self._legacy
        if type(loader) is SourceFileLoader and (is_legacy or is_user_module(name, loader.path)):
            spec.loader = UserSourceLoader(name, loader.path)  # type: ignore[union-attr]
        return spec

    def _find_with_others(self, name: str, path: Any, target: Any) -> ModuleSpec | None:
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None


def is_user_module(name: str, path: str) -> bool:
    """Returns True if the module `name` with the source file `path` is the user's and not a library.

    Example:
      >>> is_user_module('train', '/home/me/project/train.py')
      True
      >>> is_user_module('argparse', os.path.join(sysconfig.get_path('stdlib'), 'argparse.py'))
      False
    """
    if name.partition(".")[0] in _LIBRARIES:
        return False
    root = os.path.dirname(path)
    levels = name.count(".") + (os.path.basename(path) == "__init__.py")
    for _ in range(levels):
        root = os.path.dirname(root)
    return not _holds_libraries(root)


@functools.cache
def _holds_libraries(directory: str) -> bool:
    """Returns True if a directory of `sys.path` is the standard library or was filled by a package installer."""
    real = os.path.realpath(directory or os.curdir)
    if {"site-packages", "dist-packages"} & {*real.split(os.sep), *directory.split(os.sep)}:
        return True
    if any(real == library or real.startswith(library + os.sep) for library in _STANDARD_LIBRARY):
        return True
    # `pip install --target DIR` with DIR on PYTHONPATH, as clusters use it.
    try:
        return any(entry.endswith(".dist-info") for entry in os.listdir(real))
    except OSError:
        return False


@functools.lru_cache(maxsize=1)
def user_builtins() -> ModuleType:
    """Returns the `builtins` of user modules: those of Python, the names of Python 2, and `user_import`.

    Example:
      >>> user_builtins().xrange is range
      True
    """
    module = ModuleType("builtins", builtins.__doc__)
    own = vars(module)
    own.update(vars(builtins))
    own.update(python2.BUILTINS)
    own.update(python2_division.BUILTINS)
    own["__import__"] = user_import
    own[USER_MARK] = True
    builtins.__class__ = _follow(own)
    return module


def _follow(own: dict[str, Any]) -> type[ModuleType]:
    """Returns a class for `builtins` that repeats its changes in `own`: `mox.file.shift` and tests replace `open`."""

    class Builtins(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            if name == "open" and own.get("file") is own["open"]:
                own["file"] = value
            if name != "__import__":
                own[name] = value
            super().__setattr__(name, value)

        def __delattr__(self, name: str) -> None:
            super().__delattr__(name)
            if name in python2.BUILTINS:
                own[name] = python2.BUILTINS[name]
            elif name != "__import__":
                own.pop(name, None)

    return Builtins


def user_import(
    name: str,
    globals: dict[str, Any] | None = None,
    locals: dict[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """`__import__` of user modules: serves the facade for TensorFlow, and views with the names of 2018.

    Example:
      >>> user_import('time').clock.__name__
      'perf_counter'
    """
    if level == 0 and name.partition(".")[0] in facade.HEADS:
        return facade.import_name(name, fromlist or ())
    if level == 0 and python2_source.enabled() and _is_beside(name, globals or {}):
        level = 1
        if not fromlist:
            # `import sibling` binds the sibling, and not the package that is returned for a name with a dot.
            builtins.__import__(name, globals, locals, (), level)
            return sys.modules[f"{(globals or {})['__package__']}.{name.partition('.')[0]}"]
    try:
        if level == 0 and old_libraries.is_gone(name):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        module = builtins.__import__(name, globals, locals, fromlist or (), level)
    except ModuleNotFoundError as error:
        # Missing is this module, or a package that it was in, and not a module that it imports.
        is_missing = level == 0 and error.name is not None and f"{name}.".startswith(f"{error.name}.")
        old = views.old_module(name) if is_missing else None
        if old is None:
            raise
        # `import scipy.misc` gives the package, whose view has the module.
        module = old if fromlist or "." not in name else builtins.__import__(name.partition(".")[0])
    return views.view(module)


def _is_beside(name: str, globals: dict[str, Any]) -> bool:
    """Returns True if Python 2 imports `name` from the package of the importing module."""
    package = globals.get("__package__")
    if not package or isinstance(globals.get("absolute_import"), __future__._Feature):
        return False
    return importlib.util.find_spec(f"{package}.{name.partition('.')[0]}") is not None


def install(legacy: Collection[str] = ()) -> None:
    """Loads the modules of the user as user modules from now on.

    Args:
      legacy: installed packages that count as user modules too.

    Example:
      >>> finders = list(sys.meta_path)
      >>> install()
      >>> isinstance(sys.meta_path[0], UserModuleFinder)
      True
      >>> sys.meta_path[:] = finders
    """
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, UserModuleFinder)]
    sys.meta_path.insert(0, UserModuleFinder(legacy))

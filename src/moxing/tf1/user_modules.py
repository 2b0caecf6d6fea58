"""Which modules are the user's own, and what their import statements give them.

CPython takes `__import__` for an import statement from the `__builtins__` of the module that executes it. The modules
of the user get a private copy of the builtins, with an `__import__` that serves the TensorFlow 1 facade and the names
of that era. Libraries keep the real modules, and nothing is rewritten or patched.
"""

from __future__ import annotations

import builtins
import functools
import os
import sys
import sysconfig
from collections.abc import Collection, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from moxing.tf1 import python2

#: Never the user's, wherever they are installed.
_LIBRARIES = frozenset({"moxing", "tensorflow", "tf_keras"})


class UserSourceLoader(SourceFileLoader):
    """Loads a source file of the user: the same code, with the builtins for user modules."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        # Here and not in exec_module, whose frame would show up in the tracebacks of failing imports.
        module = ModuleType(spec.name)
        module.__dict__["__builtins__"] = vars(user_builtins())
        return module

    def get_code(self, fullname: str) -> CodeType | None:
        code = super().get_code(fullname)
        if code is not None:
            python2.note_builtins(code)
        return code

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        try:
            return super().source_to_code(data, path, _optimize=_optimize)
        except SyntaxError as error:
            advice = python2.explain(error)
            if advice is not None:
                error.add_note(advice)
            raise


class UserModuleFinder:
    """Finds modules as Python does and gives those of the user the loader above."""

    def __init__(self, legacy: Collection[str] = ()) -> None:
        self.legacy = frozenset(legacy)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = self._find_with_others(name, path, target)
        # Extension modules, frozen ones and other people's loaders are left alone.
        loader = None if spec is None else spec.loader
        if type(loader) is SourceFileLoader and (self._is_legacy(name) or is_user_module(name, loader.path)):
            spec.loader = UserSourceLoader(name, loader.path)  # type: ignore[union-attr]
        return spec

    def _find_with_others(self, name: str, path: Any, target: Any) -> ModuleSpec | None:
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None

    def _is_legacy(self, name: str) -> bool:
        return bool(self.legacy) and name.partition(".")[0] in self.legacy


def is_user_module(name: str, path: str) -> bool:
    """Whether the source file `path` of the module `name` is the user's own and not a library's.

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
    """Whether a directory of `sys.path` is the standard library or was filled by a package installer."""
    real = os.path.realpath(directory or os.curdir)
    if {"site-packages", "dist-packages"} & {*real.split(os.sep), *directory.split(os.sep)}:
        return True
    for key in ("stdlib", "platstdlib"):
        library = os.path.realpath(sysconfig.get_path(key))
        if real == library or real.startswith(library + os.sep):
            return True
    # `pip install --target DIR` with DIR on PYTHONPATH, as clusters do it.
    try:
        return any(entry.endswith(".dist-info") for entry in os.listdir(real))
    except OSError:
        return False


@functools.lru_cache(maxsize=1)
def user_builtins() -> ModuleType:
    """The `builtins` of user modules: Python's own, the names of Python 2, and our `__import__`.

    Example:
      >>> user_builtins().xrange is range
      True
    """
    module = ModuleType("builtins", builtins.__doc__)
    own = vars(module)
    own.update(vars(builtins))
    own.update(python2.BUILTINS)
    own["__import__"] = user_import
    return module


def user_import(
    name: str,
    globals: dict[str, Any] | None = None,
    locals: dict[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """`__import__` for user modules: TensorFlow comes from the facade, some libraries with the names of 2018.

    Example:
      >>> user_import('time').clock.__name__
      'perf_counter'
    """
    from moxing.tf1 import era, facade

    if level == 0 and name.partition(".")[0] in facade.HEADS:
        return facade.import_name(name, fromlist or ())
    try:
        module = builtins.__import__(name, globals, locals, fromlist or (), level)
    except ModuleNotFoundError as error:
        old = era.old_module(name) if level == 0 and error.name == name.partition(".")[0] else None
        if old is None:
            raise
        return old
    return era.view(module)


def install(legacy: Collection[str] = ()) -> None:
    """From now on, modules of the user are loaded as such; so are the installed packages named in `legacy`.

    Example:
      >>> finders = list(sys.meta_path)
      >>> install()
      >>> isinstance(sys.meta_path[0], UserModuleFinder)
      True
      >>> sys.meta_path[:] = finders
    """
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, UserModuleFinder)]
    sys.meta_path.insert(0, UserModuleFinder(legacy))

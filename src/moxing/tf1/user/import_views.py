"""Views of `importlib` and `runpy` for user modules: what they load is a user module too."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
from types import ModuleType
from typing import Any

from moxing.tf1.era import views
from moxing.tf1.era.module_view import Names, constants
from moxing.tf1.user import user_modules


def install() -> None:
    """Shows the views to user modules, and the builtins of user modules as `builtins`."""
    views.replace("builtins", user_modules.user_builtins)
    views.add_view("importlib", _importlib_names)
    views.add_view("importlib.util", _importlib_util_names)
    views.add_view("importlib.machinery", _importlib_machinery_names)
    views.add_view("runpy", _runpy_names)


def _importlib_names() -> Names:
    def import_module(name: str, package: str | None = None) -> ModuleType:
        if name.startswith("."):
            return importlib.import_module(name, package)
        top = user_modules.user_import(name)
        return user_modules.user_import(name, fromlist=("__name__",)) if "." in name else top

    return constants(import_module=import_module)


def _importlib_util_names() -> Names:
    def spec_from_file_location(name: str, location: Any = None, **kwargs: Any) -> Any:
        spec = importlib.util.spec_from_file_location(name, location, **kwargs)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = user_modules.UserSourceLoader(name, spec.loader.path)
        return spec

    return constants(spec_from_file_location=spec_from_file_location)


def _importlib_machinery_names() -> Names:
    return constants(SourceFileLoader=user_modules.UserSourceLoader)


def _runpy_names() -> Names:
    import runpy

    def run_path(path_name: str, init_globals: Any = None, run_name: str | None = None) -> dict[str, Any]:
        user_globals = {"__builtins__": user_modules.user_builtins(), **(init_globals or {})}
        return runpy.run_path(path_name, user_globals, run_name)

    return constants(run_path=run_path)

"""Runs a script as `python script.py` does, or the cells of a notebook, but its modules see TensorFlow 1."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType, TracebackType
from typing import Any

from moxing.tf1.era import python2, python2_source, views
from moxing.tf1.era.python2_source import ConverterMissing as ConverterMissing
from moxing.tf1.graph import v1_behavior
from moxing.tf1.user import child_processes, command_line, facade, import_views, notebooks, user_modules
from moxing.tf1.user.child_processes import Launch

_INTERRUPTED = 130

#: The modules that `load_main` replaced.
_replaced: list[ModuleType | None] = []


class LaunchError(Exception):
    """The script or module to launch does not exist."""


def run(launch: Launch, arguments: Sequence[str] = ()) -> int:
    """Runs a script or module as `__main__`. `SystemExit` is not caught.

    Args:
      launch: the script or module.
      arguments: the command line of the script, without its name.

    Returns:
      The exit code.

    Raises:
      LaunchError: the script or module does not exist, or is a notebook of another version.

    Example:
      >>> run(Launch('no_such_script.py'))  # doctest: +ELLIPSIS
      Traceback (most recent call last):
      moxing.tf1.user.launcher.LaunchError: there is no script 'no_such_script.py' in ...
    """
    if not launch.is_module:
        path = _locate(launch)
        if notebooks.is_notebook(path):
            try:
                notebooks.load(path)
            except ValueError as error:
                raise LaunchError(str(error)) from None
    prepare(launch)
    if launch.is_module and not sys.flags.safe_path and sys.path:
        sys.path[0] = os.getcwd()
    try:
        # After `prepare`: this imports the packages that a module is in, which are the user's too.
        path = _locate(launch)
        sys.argv = [launch.target if not launch.is_module else path, *arguments]
        if not launch.is_module and not sys.flags.safe_path and sys.path:
            sys.path[0] = os.path.dirname(os.path.realpath(path))
        load_main(launch, "__main__")
    except (SystemExit, LaunchError):
        raise
    except BaseException as error:
        _report(error)
        return _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def prepare(launch: Launch) -> None:
    """Prepares this process for user modules: TensorFlow 1 behavior, imports, flags, child processes."""
    python2_source.enable(launch.py2)
    v1_behavior.use_reference_variables(launch.ref_variables)
    v1_behavior.enable_on_import()
    import_views.install()
    user_modules.install(launch.legacy)
    command_line.shield_argparse()
    views.on_import("absl", command_line.shield_absl)
    for package in ("multiprocessing", "concurrent"):
        views.on_import(package, child_processes.install)
    child_processes.remember(launch)


def load_main(launch: Launch, name: str) -> dict[str, Any]:
    """Executes the script or module under the name `name` and returns the names that it defines."""
    if name != "__main__":
        prepare(launch)
    path = _locate(launch)
    loader = user_modules.UserSourceLoader(name, path)
    module = ModuleType(name)
    module.__file__ = path
    module.__loader__ = loader
    module.__dict__["__cached__"] = None
    module.__dict__["__builtins__"] = user_modules.user_builtins()
    if launch.is_module:
        module.__spec__ = _spec(launch.target)
        module.__package__ = module.__spec__.parent if module.__spec__ is not None else None
    else:
        module.__package__ = None
    # The module that was __main__ must not be collected while its functions still run.
    _replaced.append(sys.modules.get(name))
    sys.modules[name] = module
    if notebooks.is_notebook(path):
        # A child process gets no second run of the notebook: it has no `if __name__ == "__main__"`.
        if name == "__main__":
            notebooks.run(path, module.__dict__)
        return module.__dict__
    code = loader.source_to_code(loader.get_data(path), path)
    python2.note_builtins(code)
    exec(code, module.__dict__)
    return module.__dict__


def _locate(launch: Launch) -> str:
    if launch.is_module:
        spec = _spec(launch.target)
        if spec is None or spec.origin is None or not spec.has_location:
            raise LaunchError(f"no module named {launch.target!r} with a source file was found")
        return spec.origin
    path = os.path.abspath(launch.target)
    if os.path.isdir(path):
        main = os.path.join(path, "__main__.py")
        if os.path.isfile(main):
            return main
        raise LaunchError(f"{launch.target} is a directory without a __main__.py. Give the script to run")
    if not os.path.isfile(path):
        raise LaunchError(f"there is no script {launch.target!r} in {os.getcwd()}")
    return path


def _spec(name: str) -> importlib.machinery.ModuleSpec | None:
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            return None
        raise
    return spec


def _report(error: BaseException) -> None:
    """Prints the error as Python does, without the frames of the launcher."""
    _strip(error, set())
    sys.excepthook(type(error), error, error.__traceback__)


def _strip(error: BaseException | None, seen: set[int]) -> None:
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = _without_own_frames(error.__traceback__)
        _strip(error.__cause__, seen)
        error = error.__context__


def _without_own_frames(traceback: TracebackType | None) -> TracebackType | None:
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    following = None
    for entry in reversed(entries):
        if entry.tb_frame.f_code.co_filename not in _OWN_FILES:
            entry.tb_next = following
            following = entry
    return following


_OWN_FILES = frozenset(
    {
        __file__,
        user_modules.__file__,
        python2_source.__file__,
        facade.__file__,
        notebooks.__file__,
        "<frozen importlib._bootstrap>",
        "<frozen importlib._bootstrap_external>",
    }
)

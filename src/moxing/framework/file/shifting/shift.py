"""`mox.file.shift`: makes Python's file functions accept URLs, and undoes it."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moxing.framework.file.urls import get_scheme

if TYPE_CHECKING:
    from moxing.framework.file.shifting.targets import Route

#: Python looks up the capabilities of functions in these sets, so the wrappers must be in them as well.
_CAPABILITY_SETS = ("supports_dir_fd", "supports_effective_ids", "supports_fd", "supports_follow_symlinks")
_ORIGINAL = "_mox_original"
#: Libraries check whether such a name is a local file before they download it. It must stay "no".
_WEB = ("http", "https", "ftp", "data")


def shift(old: str, new: str) -> None:
    """Makes Python's file functions accept URLs, or restores them.

    After `shift('os', 'mox')` the built-in `open`, `glob.glob` and functions of `os`, `os.path` and `shutil` pass URLs
    to `mox.file` and plain paths to the original functions. So do the readers of NumPy and, if fsspec is installed, of
    pandas. A name that was imported before, as by `from os.path import exists`, is not affected: call `shift` at
    the top of the script.

    `shift('tf', 'mox')` does the same for `tf.gfile` and `tf.io.gfile`.

    Args:
      old: 'os' or 'tf', or 'mox' to undo it.
      new: 'mox', or 'os' or 'tf' to undo it.

    Raises:
      ValueError: Any other pair of names.

    Example:
      >>> import moxing as mox, os
      >>> mox.file.shift('os', 'mox')
      >>> os.path.isdir('file:///')
      True
      >>> mox.file.shift('mox', 'os')
      >>> os.path.isdir('file:///')
      False
    """
    from moxing.framework.file.shifting.targets import ROUTES

    if (old, new) == ("os", "mox"):
        # Import all modules before the first function is replaced: shutil inspects os when it is imported.
        for route, module in [
            (route, module) for route in ROUTES if (module := _find_module(route.module)) is not None
        ]:
            original = getattr(module, route.name)
            if not hasattr(original, _ORIGINAL):
                _replace(module, route.name, original, _make_wrapper(route, original))
        _bridge("install")
    elif (old, new) == ("mox", "os"):
        for route in ROUTES:
            module = _find_module(route.module)
            wrapper = getattr(module, route.name, None)
            if wrapper is not None and hasattr(wrapper, _ORIGINAL):
                _replace(module, route.name, wrapper, getattr(wrapper, _ORIGINAL))
        _bridge("uninstall")
    elif {old, new} == {"tf", "mox"}:
        # Imported by name: only this module needs TensorFlow.
        _call("moxing.tf1.files.gfile_shift", "install" if new == "mox" else "uninstall")
    else:
        raise ValueError(f"old={old!r}, new={new!r}: expected shift('os', 'mox') or shift('tf', 'mox'), or back.")


def _find_module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None  # NumPy may not be installed.


def _bridge(action: str) -> None:
    """Installs or removes the bridge for libraries that open URLs through fsspec, if it is installed."""
    if importlib.util.find_spec("fsspec") is not None:
        _call("moxing.framework.file.shifting.fsspec_bridge", action)


def _call(module: str, action: str) -> None:
    getattr(importlib.import_module(module), action)()


def _replace(module: Any, name: str, current: Callable[..., Any], replacement: Callable[..., Any]) -> None:
    setattr(module, name, replacement)
    for capability in (getattr(os, set_name) for set_name in _CAPABILITY_SETS):
        if current in capability and hasattr(replacement, _ORIGINAL):
            capability.add(replacement)
        elif hasattr(current, _ORIGINAL):
            capability.discard(current)


def _make_wrapper(route: Route, original: Callable[..., Any]) -> Callable[..., Any]:
    count = len(route.paths)

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for value in args[:count]:
            # Fast path: nearly every call passes a plain path.
            if type(value) is str and "://" in value and _is_shifted(value):
                return _call_target(route, args, kwargs)
        if kwargs and any(
            _is_shifted(value) for key, value in kwargs.items() if key in route.paths and type(value) is str
        ):
            return _call_target(route, args, kwargs)
        return original(*args, **kwargs)

    setattr(wrapper, _ORIGINAL, original)
    return wrapper


def _is_shifted(value: str) -> bool:
    scheme = get_scheme(value)
    return scheme is not None and scheme not in _WEB


def _call_target(route: Route, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls the target with the paths as positional arguments: their names differ in `mox.file`."""
    named = [kwargs.pop(name) for name in route.paths[len(args) :] if name in kwargs]
    return route.target(*args, *named, **kwargs)

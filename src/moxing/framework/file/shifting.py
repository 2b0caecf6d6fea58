"""`mox.file.shift`: Python's own file functions, made to understand urls."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moxing.framework.file.paths import get_scheme

if TYPE_CHECKING:
    from moxing.framework.file.shift_targets import Route

#: Python looks functions up in these sets to learn what they can do, so the stand-ins have to be in them as well.
_CAPABILITY_SETS = ("supports_dir_fd", "supports_effective_ids", "supports_fd", "supports_follow_symlinks")
_ORIGINAL = "_mox_original"
#: Libraries ask whether such a name is a file before they fetch it: it is none, as it was before.
_WEB = ("http", "https", "ftp", "data")


def shift(old: str, new: str) -> None:
    """Makes Python's file functions understand urls, or makes them as they were again.

    After `shift('os', 'mox')` the built-in `open`, `glob.glob` and functions of `os`, `os.path` and `shutil` take urls
    and hand those to `mox.file`; plain paths stay with the original functions. So do readers of NumPy and, where fsspec
    is installed, of pandas. A name that a module has taken before
    with `from os.path import exists` is out of reach: shift at the top of the script.

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
    from moxing.framework.file.shift_targets import ROUTES

    if (old, new) == ("os", "mox"):
        # All modules are imported before the first function is replaced: shutil looks at os when it is imported.
        for route, module in [
            (route, module) for route in ROUTES if (module := _find_module(route.module)) is not None
        ]:
            original = getattr(module, route.name)
            if not hasattr(original, _ORIGINAL):
                _put(module, route.name, original, _make_stand_in(route, original))
        _bridge("install")
    elif (old, new) == ("mox", "os"):
        for route in ROUTES:
            module = _find_module(route.module)
            stand_in = getattr(module, route.name, None)
            if stand_in is not None and hasattr(stand_in, _ORIGINAL):
                _put(module, route.name, stand_in, getattr(stand_in, _ORIGINAL))
        _bridge("uninstall")
    elif {old, new} == {"tf", "mox"}:
        # By its name: it needs TensorFlow, and nothing here does.
        _call("moxing.tf1.gfile_shift", "install" if new == "mox" else "uninstall")
    else:
        raise ValueError(f"old={old!r}, new={new!r}: expected shift('os', 'mox') or shift('tf', 'mox'), or back.")


def _find_module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None  # Without NumPy there is nothing of it to shift.


def _bridge(action: str) -> None:
    """pandas and others open urls through fsspec, where that is installed."""
    if importlib.util.find_spec("fsspec") is not None:
        _call("moxing.framework.file.fsspec_bridge", action)


def _call(module: str, action: str) -> None:
    getattr(importlib.import_module(module), action)()


def _put(module: Any, name: str, present: Callable[..., Any], successor: Callable[..., Any]) -> None:
    setattr(module, name, successor)
    for capability in (getattr(os, set_name) for set_name in _CAPABILITY_SETS):
        if present in capability and hasattr(successor, _ORIGINAL):
            capability.add(successor)
        elif hasattr(present, _ORIGINAL):
            capability.discard(present)


def _make_stand_in(route: Route, original: Callable[..., Any]) -> Callable[..., Any]:
    count = len(route.paths)

    @functools.wraps(original)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        for value in args[:count]:
            # The cheap test first: nearly every call is for a plain path.
            if type(value) is str and "://" in value and _takes(value):
                return _call_target(route, args, kwargs)
        if kwargs and any(_takes(value) for key, value in kwargs.items() if key in route.paths and type(value) is str):
            return _call_target(route, args, kwargs)
        return original(*args, **kwargs)

    setattr(stand_in, _ORIGINAL, original)
    return stand_in


def _takes(value: str) -> bool:
    scheme = get_scheme(value)
    return scheme is not None and scheme not in _WEB


def _call_target(route: Route, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls the target with the paths in front, as they have other names in `mox.file`."""
    named = [kwargs.pop(name) for name in route.paths[len(args) :] if name in kwargs]
    return route.target(*args, *named, **kwargs)

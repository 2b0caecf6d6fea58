"""`mox.file.shift`: Python's own file functions, made to understand urls."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from moxing.framework.file import file_object, listing, operations, transfer
from moxing.framework.file.entries import FileStatistics
from moxing.framework.file.paths import get_scheme

#: Python looks functions up in these sets to learn what they can do, so the stand-ins have to be in them as well.
_CAPABILITY_SETS = ("supports_dir_fd", "supports_effective_ids", "supports_fd", "supports_follow_symlinks")
_ORIGINAL = "_mox_original"


class _Route(NamedTuple):
    """One function of the standard library: where it is, which arguments are paths, what takes over for urls."""

    module: str
    name: str
    paths: tuple[str, ...]
    target: Callable[..., Any]


# The targets below take the options of the originals as far as they mean something for a url; Python itself refuses
# the others with a TypeError.


def _open(
    name: str,
    mode: str = "r",
    buffering: int = -1,  # A file object of mox.file buffers by itself.
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> file_object.File:
    return file_object.File(name, mode, encoding=encoding, errors=errors, newline=newline)


def _makedirs(name: str, mode: int = 0o777, exist_ok: bool = False) -> None:
    operations.make_dirs(name)


def _mkdir(path: str, mode: int = 0o777) -> None:
    operations.mk_dir(path)


def _isfile(path: str) -> bool:
    return operations.exists(path) and not operations.is_directory(path)


def _stat(path: str, *, follow_symlinks: bool = True) -> FileStatistics:
    return operations.stat(path)


def _copyfile(src: str, dst: str, *, follow_symlinks: bool = True) -> str:
    transfer.copy(src, dst)
    return dst


def _copytree(src: str, dst: str, *, dirs_exist_ok: bool = False) -> str:
    transfer.copy_parallel(src, dst)
    return dst


def _rmtree(path: str, ignore_errors: bool = False) -> None:
    try:
        operations.remove(path, recursive=True)
    except OSError:
        if not ignore_errors:
            raise


_ROUTES = (
    _Route("builtins", "open", ("file",), _open),
    _Route("glob", "glob", ("pathname",), listing.glob),
    _Route("os", "listdir", ("path",), listing.list_directory),
    _Route("os", "makedirs", ("name",), _makedirs),
    _Route("os", "mkdir", ("path",), _mkdir),
    _Route("os", "remove", ("path",), operations.remove),
    _Route("os", "rename", ("src", "dst"), operations.rename),
    _Route("os", "scandir", ("path",), listing.scan_dir),
    _Route("os", "stat", ("path",), _stat),
    _Route("os", "unlink", ("path",), operations.remove),
    _Route("os", "walk", ("top",), listing.walk),
    _Route("os.path", "exists", ("path",), operations.exists),
    _Route("os.path", "getsize", ("filename",), listing.get_size),
    _Route("os.path", "isdir", ("s",), operations.is_directory),
    _Route("os.path", "isfile", ("path",), _isfile),
    _Route("shutil", "copyfile", ("src", "dst"), _copyfile),
    _Route("shutil", "copytree", ("src", "dst"), _copytree),
    _Route("shutil", "rmtree", ("path",), _rmtree),
)


def shift(old: str, new: str) -> None:
    """Makes Python's file functions understand urls, or makes them as they were again.

    After `shift('os', 'mox')` the built-in `open`, `glob.glob` and functions of `os`, `os.path` and `shutil` take urls
    and hand those to `mox.file`; plain paths stay with the original functions. A name that a module has taken before
    with `from os.path import exists` is out of reach: shift at the top of the script.

    Args:
      old: 'os', or 'mox' to undo it.
      new: 'mox', or 'os' to undo it.

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
    if (old, new) == ("os", "mox"):
        # All modules are imported before the first function is replaced: shutil looks at os when it is imported.
        for route, module in [(route, importlib.import_module(route.module)) for route in _ROUTES]:
            original = getattr(module, route.name)
            if not hasattr(original, _ORIGINAL):
                _put(module, route.name, original, _make_stand_in(route, original))
    elif (old, new) == ("mox", "os"):
        for route in _ROUTES:
            module = importlib.import_module(route.module)
            stand_in = getattr(module, route.name)
            if hasattr(stand_in, _ORIGINAL):
                _put(module, route.name, stand_in, getattr(stand_in, _ORIGINAL))
    else:
        raise ValueError(f"old={old!r}, new={new!r}: expected shift('os', 'mox') or shift('mox', 'os').")


def _put(module: Any, name: str, present: Callable[..., Any], successor: Callable[..., Any]) -> None:
    setattr(module, name, successor)
    for capability in (getattr(os, set_name) for set_name in _CAPABILITY_SETS):
        if present in capability and hasattr(successor, _ORIGINAL):
            capability.add(successor)
        elif hasattr(present, _ORIGINAL):
            capability.discard(present)


def _make_stand_in(route: _Route, original: Callable[..., Any]) -> Callable[..., Any]:
    count = len(route.paths)

    @functools.wraps(original)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        for value in args[:count]:
            # The cheap test first: nearly every call is for a plain path.
            if type(value) is str and "://" in value and get_scheme(value):
                return _call_target(route, args, kwargs)
        if kwargs and any(
            get_scheme(value) for key, value in kwargs.items() if key in route.paths and type(value) is str
        ):
            return _call_target(route, args, kwargs)
        return original(*args, **kwargs)

    setattr(stand_in, _ORIGINAL, original)
    return stand_in


def _call_target(route: _Route, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls the target with the paths in front, as they have other names in `mox.file`."""
    named = [kwargs.pop(name) for name in route.paths[len(args) :] if name in kwargs]
    return route.target(*args, *named, **kwargs)

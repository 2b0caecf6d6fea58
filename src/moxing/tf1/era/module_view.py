"""A view of a library module: the same module, with more names. The real module does not change."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

_log = logging.getLogger("moxing")
_noted: set[str] = set()

#: Returns the value of a name; called when the name is first used.
Maker = Callable[[], Any]
Names = Mapping[str, Maker]


def constants(**values: Any) -> Names:
    """Returns names whose values are known already.

    Example:
      >>> constants(maxint=7)['maxint']()
      7
    """
    return {name: functools.partial(lambda value: value, value) for name, value in values.items()}


def note_once(name: str, instead: str) -> None:
    """Logs once, at debug level, that `name` is from an older version and what serves it.

    Example:
      >>> note_once('np.int', 'int')
    """
    if name not in _noted:
        _noted.add(name)
        _log.debug("%s is a name of an older version: served as %s", name, instead)


class ModuleView(ModuleType):
    """A module with additional names, for user code only.

    Reading is as fast as in the real module: its names are copied, and others are found by a `__getattr__` in the
    module, which costs nothing for names that are there. Writing goes to the real module too.

    Args:
      real: the module.
      names: the additional names; they replace names of the module.

    Example:
      >>> import time
      >>> view = ModuleView(time, {'clock': lambda: time.perf_counter})
      >>> view.sleep is time.sleep, view.clock is time.perf_counter, hasattr(time, 'clock')
      (True, True, False)
    """

    def __init__(self, real: ModuleType, names: Names) -> None:
        super().__init__(real.__name__, real.__doc__)
        own = self.__dict__
        own.update(vars(real))
        for name in names:
            own.pop(name, None)
        own["_moxing_view"] = (real, names)

        def find(name: str) -> Any:
            own[name] = value = _added_name(real, names, name) if name in names else getattr(real, name)
            return value

        own["__getattr__"] = find

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_moxing_view"][0], name, value)
        self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        delattr(self.__dict__["_moxing_view"][0], name)
        self.__dict__.pop(name, None)

    def __dir__(self) -> Iterable[str]:
        real, names = self.__dict__["_moxing_view"]
        return sorted({*dir(real), *names})


def live_view(real: ModuleType, names: Names) -> ModuleType:
    """Returns a view that copies nothing, for a module whose values change while a program runs: `sys`.

    Example:
      >>> import sys
      >>> view = live_view(sys, {'maxint': lambda: sys.maxsize})
      >>> view.argv is sys.argv, view.maxint == sys.maxsize
      (True, True)
    """

    class LiveView(ModuleType):
        # Faster than __getattr__, which Python calls only after it has raised and caught an AttributeError.
        def __getattribute__(self, name: str) -> Any:
            try:
                return getattr(real, name)
            except AttributeError:
                if name not in names:
                    raise
                return _added_name(real, names, name)

        def __setattr__(self, name: str, value: Any) -> None:
            setattr(real, name, value)

        def __delattr__(self, name: str) -> None:
            delattr(real, name)

        def __dir__(self) -> Iterable[str]:
            return sorted({*dir(real), *names})

    return LiveView(real.__name__, real.__doc__)


def _added_name(real: ModuleType, names: Names, name: str) -> Any:
    value = names[name]()
    # A name that the module still has is replaced for another reason than its age.
    if name not in vars(real):
        is_own = str(getattr(value, "__module__", "")).startswith("moxing")
        instead = "MoXing's own" if is_own else getattr(value, "__qualname__", None) or repr(value)
        note_once(f"{real.__name__}.{name}", instead)
    return value


def real_module(module: ModuleType) -> ModuleType:
    """Returns the module behind a view, and any other module unchanged.

    Example:
      >>> import time
      >>> real_module(ModuleView(time, {})) is time
      True
    """
    return module.__dict__["_moxing_view"][0] if isinstance(module, ModuleView) else module

"""Names of 2018 that Python, NumPy and pandas have dropped since, for the modules of the user."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from moxing.tf1 import era_numpy, era_pandas, views


def _names(**values: Any) -> dict[str, views.Maker]:
    return {name: functools.partial(lambda value: value, value) for name, value in values.items()}


def _sys_names() -> Mapping[str, views.Maker]:
    # `reload(sys); sys.setdefaultencoding('utf8')` opens many scripts of that time; Python 3 is UTF-8 anyway.
    return _names(maxint=sys.maxsize, setdefaultencoding=lambda encoding: None, exc_clear=lambda: None)


def _time_names() -> Mapping[str, views.Maker]:
    import time

    return _names(clock=time.perf_counter)


def _collections_names() -> Mapping[str, views.Maker]:
    import collections.abc

    return _names(**{name: getattr(collections.abc, name) for name in collections.abc.__all__})


def _itertools_names() -> Mapping[str, views.Maker]:
    import itertools

    return _names(
        izip=zip, imap=map, ifilter=filter, izip_longest=itertools.zip_longest, ifilterfalse=itertools.filterfalse
    )


def _inspect_names() -> Mapping[str, views.Maker]:
    import collections
    import inspect

    ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")

    def getargspec(function: Any) -> Any:
        return ArgSpec(*inspect.getfullargspec(function)[:4])

    return _names(getargspec=getargspec)


def _string_names() -> Mapping[str, views.Maker]:
    import string

    return _names(
        letters=string.ascii_letters,
        lowercase=string.ascii_lowercase,
        uppercase=string.ascii_uppercase,
        maketrans=str.maketrans,
        join=lambda words, separator=" ": separator.join(words),
    )


def _urllib_names() -> Mapping[str, views.Maker]:
    def later(module: str, name: str) -> views.Maker:
        # Not imported before it is used: urllib.request brings in half of the standard library.
        return lambda: getattr(importlib.import_module(module), name)

    request = ("urlopen", "urlretrieve", "urlcleanup", "pathname2url", "url2pathname")
    parse = ("urlencode", "quote", "quote_plus", "unquote", "unquote_plus")
    return {
        **{name: later("urllib.request", name) for name in request},
        **{name: later("urllib.parse", name) for name in parse},
    }


def _importlib_names() -> Mapping[str, views.Maker]:
    from moxing.tf1 import user_modules

    def import_module(name: str, package: str | None = None) -> ModuleType:
        if name.startswith("."):
            return importlib.import_module(name, package)
        top = user_modules.user_import(name)
        return user_modules.user_import(name, fromlist=("__name__",)) if "." in name else top

    return _names(import_module=import_module)


def _importlib_util_names() -> Mapping[str, views.Maker]:
    import importlib.util

    from moxing.tf1 import user_modules

    def spec_from_file_location(name: str, location: Any = None, **kwargs: Any) -> Any:
        spec = importlib.util.spec_from_file_location(name, location, **kwargs)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = user_modules.UserSourceLoader(name, spec.loader.path)
        return spec

    return _names(spec_from_file_location=spec_from_file_location)


def _importlib_machinery_names() -> Mapping[str, views.Maker]:
    from moxing.tf1 import user_modules

    return _names(SourceFileLoader=user_modules.UserSourceLoader)


def _runpy_names() -> Mapping[str, views.Maker]:
    import runpy

    from moxing.tf1 import user_modules

    def run_path(path_name: str, init_globals: Any = None, run_name: str | None = None) -> dict[str, Any]:
        start = {"__builtins__": user_modules.user_builtins(), **(init_globals or {})}
        return runpy.run_path(path_name, start, run_name)

    return _names(run_path=run_path)


#: The modules that user code sees with more names, each with what gives those names.
_VIEWS: dict[str, Callable[[], Mapping[str, views.Maker]]] = {
    "sys": _sys_names,
    "time": _time_names,
    "collections": _collections_names,
    "itertools": _itertools_names,
    "inspect": _inspect_names,
    "string": _string_names,
    "urllib": _urllib_names,
    "importlib": _importlib_names,
    "importlib.util": _importlib_util_names,
    "importlib.machinery": _importlib_machinery_names,
    "runpy": _runpy_names,
    "numpy": era_numpy.names,
    "numpy.random": era_numpy.random_names,
}

#: Their values change while a program runs: nothing may be copied from them.
_LIVE = frozenset({"sys"})

#: Done once, when a module of the user first imports the package.
_ON_IMPORT: dict[str, Callable[[], None]] = {"numpy": era_numpy.install, "pandas": era_pandas.install}

#: Modules of Python 2 that have another name or another place today.
_OLD_MODULES: dict[str, tuple[str, ...]] = {
    "__builtin__": ("builtins",),
    "ConfigParser": ("configparser",),
    "HTMLParser": ("html.parser",),
    "Queue": ("queue",),
    "SocketServer": ("socketserver",),
    "StringIO": ("io",),
    "Tkinter": ("tkinter",),
    "cPickle": ("pickle",),
    "cStringIO": ("io",),
    "copy_reg": ("copyreg",),
    "httplib": ("http.client",),
    "thread": ("_thread",),
    "urllib2": ("urllib.error", "urllib.parse", "urllib.request"),
    "urlparse": ("urllib.parse",),
}


def on_import(package: str, action: Callable[[], None]) -> None:
    """Has `action` called once, when a module of the user first imports `package`.

    Example:
      >>> on_import('a_package_of_the_user', lambda: None)
    """
    _ON_IMPORT[package] = action


def view(module: ModuleType) -> ModuleType:
    """The module as user code sees it: with the names of its time, or just as it is.

    Example:
      >>> import time
      >>> view(time).clock is time.perf_counter
      True
    """
    # Anything may stand in sys.modules, and then has no name to go by.
    name = module.__name__ if isinstance(module, ModuleType) else ""
    action = _ON_IMPORT.pop(name.partition(".")[0], None)
    if action is not None:
        action()
    if name == "builtins":
        from moxing.tf1 import user_modules

        return user_modules.user_builtins()
    return _view(name) if name in _VIEWS and sys.modules.get(name) is module else module


@functools.cache
def _view(name: str) -> ModuleType:
    make = views.live_view if name in _LIVE else views.ModuleView
    module = make(sys.modules[name], _VIEWS[name]())
    # The submodules that have a view of their own, for `importlib.util` after `import importlib.util`.
    for child in _VIEWS:
        if child.startswith(name + "."):
            last = child[len(name) + 1 :]
            importlib.import_module(child)
            module.__dict__[last] = _view(child)
    return module


@functools.cache
def old_module(name: str) -> ModuleType | None:
    """The module that Python 2 called `name`, under today's name; None if Python 2 had no such module.

    Example:
      >>> old_module('cPickle').__name__
      'pickle'
    """
    if name not in _OLD_MODULES:
        return None
    today = _OLD_MODULES[name]
    views.note_once(f"module {name}", " and ".join(today))
    if len(today) == 1:
        return view(importlib.import_module(today[0]))
    merged = ModuleType(name)
    for part in today:
        vars(merged).update({key: value for key, value in vars(importlib.import_module(part)).items() if key[0] != "_"})
    return merged

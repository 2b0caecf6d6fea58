"""The names that the standard library had in Python 2 and early versions of Python 3."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from moxing.tf1.era.module_view import Maker, Names, constants


def _sys_names() -> Names:
    # `reload(sys); sys.setdefaultencoding('utf8')` opens many scripts of that time; Python 3 is UTF-8 anyway.
    return constants(maxint=sys.maxsize, setdefaultencoding=lambda encoding: None, exc_clear=lambda: None)


def _time_names() -> Names:
    import time

    return constants(clock=time.perf_counter)


def _collections_names() -> Names:
    import collections.abc

    return constants(**{name: getattr(collections.abc, name) for name in collections.abc.__all__})


def _itertools_names() -> Names:
    import itertools

    return constants(
        izip=zip, imap=map, ifilter=filter, izip_longest=itertools.zip_longest, ifilterfalse=itertools.filterfalse
    )


def _inspect_names() -> Names:
    import collections
    import inspect

    ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")

    def getargspec(function: Any) -> Any:
        return ArgSpec(*inspect.getfullargspec(function)[:4])

    return constants(getargspec=getargspec)


def _string_names() -> Names:
    import string

    return constants(
        letters=string.ascii_letters,
        lowercase=string.ascii_lowercase,
        uppercase=string.ascii_uppercase,
        maketrans=str.maketrans,
        join=lambda words, separator=" ": separator.join(words),
    )


def _urllib_names() -> Names:
    def imported(module: str, name: str) -> Maker:
        # Imported on first use: urllib.request imports a large part of the standard library.
        return lambda: getattr(importlib.import_module(module), name)

    request = ("urlopen", "urlretrieve", "urlcleanup", "pathname2url", "url2pathname")
    parse = ("urlencode", "quote", "quote_plus", "unquote", "unquote_plus")
    return {
        **{name: imported("urllib.request", name) for name in request},
        **{name: imported("urllib.parse", name) for name in parse},
    }


#: For each module, the function that returns its old names.
NAMES: dict[str, Callable[[], Names]] = {
    "sys": _sys_names,
    "time": _time_names,
    "collections": _collections_names,
    "itertools": _itertools_names,
    "inspect": _inspect_names,
    "string": _string_names,
    "urllib": _urllib_names,
}

#: Modules of Python 2 and of libraries of the time, and the modules that have their contents today.
RENAMED_MODULES: dict[str, tuple[str, ...]] = {
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
    "scipy.sparse.linalg.eigen.arpack": ("scipy.sparse.linalg",),
    "thread": ("_thread",),
    "urllib2": ("urllib.error", "urllib.parse", "urllib.request"),
    "urlparse": ("urllib.parse",),
}

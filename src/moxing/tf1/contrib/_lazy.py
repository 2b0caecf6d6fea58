"""Modules whose names are a table: each is looked up where it lives today when it is first used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from moxing.tf1.contrib import _advice


def names(*groups: tuple[str, str]) -> dict[str, str]:
    """A table from public names to places, out of (place, space-separated names).

    A name `public=path` is called differently where it lives.

    Example:
      >>> names(('tensorflow.compat.v1:nn', 'static_rnn'), ('tensorflow.compat.v1:', 'LSTM=nn.rnn_cell.LSTMCell'))
      {'static_rnn': 'tensorflow.compat.v1:nn.static_rnn', 'LSTM': 'tensorflow.compat.v1:nn.rnn_cell.LSTMCell'}
    """
    table = {}
    for place, listed in groups:
        for entry in listed.split():
            public, _, path = entry.partition("=")
            dot = "" if place.endswith(":") else "."
            table[public] = f"{place}{dot}{path or public}"
    return table


def module_functions(
    module_name: str, table: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a module with that table of names.

    Example:
      >>> getattr_, dir_ = module_functions(__name__, {'root': 'math:sqrt'})
      >>> getattr_('root')(9)
      3.0
    """
    part = module_name.rpartition(".")[2]

    def public_names() -> list[str]:
        own = vars(sys.modules[module_name]) if module_name in sys.modules else {}
        defined = (name for name in own.get("__all__", ()) if name in own)
        return sorted({*table, *defined})

    def module_getattr(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module_name!r} has no attribute {name!r}")
        if name not in table:
            raise AttributeError(_advice.missing_name(part, name, public_names()))
        value = resolve(table[name])
        # Found once; from now on it is an ordinary attribute.
        setattr(sys.modules[module_name], name, value)
        return value

    return module_getattr, public_names


def resolve(place: str) -> Any:
    """What lies at `module:path.of.attributes`.

    Example:
      >>> resolve('os:path.basename')('a/b')
      'b'
    """
    module_name, _, path = place.partition(":")
    if module_name.partition(".")[0] == "tf_slim":
        from moxing.tf1.contrib import _slim_repairs

        _slim_repairs.load()
    value: Any = importlib.import_module(module_name)
    for attribute in filter(None, path.split(".")):
        value = getattr(value, attribute)
    return value

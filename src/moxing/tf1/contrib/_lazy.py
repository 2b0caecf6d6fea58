"""Modules that are a table of names, each imported from its current location on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from moxing.tf1.contrib import _advice


def names(*groups: tuple[str, str]) -> dict[str, str]:
    """Returns a table from names to locations.

    Args:
      *groups: a location, and the names at it separated by spaces. `public=path` is a name that differs there.

    Example:
      >>> names(('tensorflow.compat.v1:nn', 'static_rnn'), ('tensorflow.compat.v1:', 'LSTM=nn.rnn_cell.LSTMCell'))
      {'static_rnn': 'tensorflow.compat.v1:nn.static_rnn', 'LSTM': 'tensorflow.compat.v1:nn.rnn_cell.LSTMCell'}
    """
    table = {}
    for location, entries in groups:
        for entry in entries.split():
            public, _, path = entry.partition("=")
            dot = "" if location.endswith(":") else "."
            table[public] = f"{location}{dot}{path or public}"
    return table


def module_functions(
    module_name: str, table: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` for a module with this table of names.

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
        # From now on it is an ordinary attribute.
        setattr(sys.modules[module_name], name, value)
        return value

    return module_getattr, public_names


def resolve(location: str) -> Any:
    """Returns the object at `module:path.of.attributes`.

    Example:
      >>> resolve('os:path.basename')('a/b')
      'b'
    """
    module_name, _, path = location.partition(":")
    if module_name.partition(".")[0] == "tf_slim":
        from moxing.tf1.contrib import _slim_repairs

        _slim_repairs.load()
    if module_name.partition(".")[0] == "tensorflow_estimator":
        importlib.import_module("moxing.tensorflow.estimator")
    value: Any = importlib.import_module(module_name)
    for attribute in filter(None, path.split(".")):
        value = getattr(value, attribute)
    return value

"""Nested fetches of `session.run`, with hooks as keys, which `tf.nest` cannot sort."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def leaves(fetches: Any) -> Iterator[Any]:
    """The values in nested dicts, lists and tuples.

    Example:
      >>> list(leaves({'a': [1, None], 'b': (2,)}))
      [1, None, 2]
    """
    if isinstance(fetches, dict):
        for value in fetches.values():
            yield from leaves(value)
    elif isinstance(fetches, list | tuple):
        for value in fetches:
            yield from leaves(value)
    else:
        yield fetches


def map_leaves(function: Callable[[Any], Any], fetches: Any) -> Any:
    """The same structure with other values.

    Example:
      >>> map_leaves(lambda value: value * 2, {'a': [1, 2], 'b': (3,)})
      {'a': [2, 4], 'b': (6,)}
    """
    if isinstance(fetches, dict):
        return type(fetches)((key, map_leaves(function, value)) for key, value in fetches.items())
    if isinstance(fetches, list):
        return [map_leaves(function, value) for value in fetches]
    if isinstance(fetches, tuple):
        values = [map_leaves(function, value) for value in fetches]
        return type(fetches)(*values) if hasattr(fetches, "_fields") else tuple(values)
    return function(fetches)

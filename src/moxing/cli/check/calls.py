"""Compares the arguments of a call with the signature of what is called."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Sequence
from typing import Any


def parameters(value: Any) -> inspect.Signature | None:
    """Returns the signature of a function or class, or None if it cannot be known without a call.

    Example:
      >>> str(parameters(lambda images, size=3: None))
      '(images, size=3)'
      >>> parameters(len) is None
      True
    """
    function: Any = value
    for _ in range(20):
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is None:
            break
        # Wrappers of MoXing and of users rename arguments; those of TensorFlow pass them on.
        if getattr(function, "__globals__", {}).get("__name__", "moxing").startswith("moxing"):
            return None
        function = wrapped
    if not (inspect.isfunction(function) or isinstance(function, type)):
        return None
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):
        return None


def wrong_arguments(names: Sequence[str], count: int, signature: inspect.Signature) -> str:
    """Returns what is wrong with a call, or an empty string.

    Args:
      names: the keyword arguments of the call.
      count: the number of its positional arguments.
      signature: the signature of what is called.

    Example:
      >>> wrong_arguments(['keepdim'], 1, inspect.signature(lambda x, keepdims=False: None))
      "it has no argument 'keepdim'. Did you mean keepdims? It has: x, keepdims"
    """
    own = signature.parameters.values()
    kinds = {parameter.kind for parameter in own}
    by_name = [one.name for one in own if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    by_position = [one for one in own if one.kind in (one.POSITIONAL_OR_KEYWORD, one.POSITIONAL_ONLY)]
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        for name in names:
            if name not in by_name:
                near = difflib.get_close_matches(name, by_name, n=1)
                hint = f" Did you mean {near[0]}?" if near else ""
                return f"it has no argument {name!r}.{hint} It has: {', '.join(by_name)}"
    if inspect.Parameter.VAR_POSITIONAL not in kinds and count > len(by_position):
        listed = ", ".join(one.name for one in by_position)
        return f"{count} positional arguments are given, it takes at most {len(by_position)}: {listed}"
    return ""

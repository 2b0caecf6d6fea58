"""Calling the user's functions with the arguments that they declare."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from moxing.tensorflow.executor.specs import ModeKeys

_MODE_NAMES = ("mode", "run_mode")


def require_callable(name: str, function: Any) -> Callable[..., Any]:
    """Returns `function` if it can be called, else raises an error that names the argument.

    Example:
      >>> require_callable('input_fn', len) is len
      True
    """
    if callable(function):
        return function
    if function is None:
        raise ValueError(f"mox.run({name}=None): {name} is needed here; give a function.")
    raise TypeError(f"mox.run({name}=...): expected a function, got a {type(function).__name__}: {function!r}.")


def call_with_mode(name: str, function: Callable[..., Any], mode: ModeKeys, *first: Any) -> Any:
    """Calls an `input_fn` or `model_fn`: the mode goes by the name it has there (`mode`, `run_mode`), else by position.

    Example:
      >>> call_with_mode('model_fn', lambda inputs, run_mode, **kwargs: (inputs, run_mode.value), ModeKeys.EVAL, [1])
      ([1], 'EVAL')
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built in C, says nothing of its parameters
        return function(*first, mode)
    parameters = signature.parameters
    expected = ", ".join([*(["inputs"] if first else []), "mode", "**kwargs"])
    given = ", ".join(str(parameter) for parameter in parameters.values())
    for mode_name in _MODE_NAMES:
        if mode_name in parameters:
            try:
                signature.bind(*first, **{mode_name: mode})
            except TypeError as error:
                raise TypeError(f"{name} is declared as ({given}): {error}; declare it as ({expected}).") from None
            return function(*first, **{mode_name: mode})
    positional = [p for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    varargs = any(p.kind == p.VAR_POSITIONAL for p in parameters.values())
    if varargs or len(positional) > len(first):
        return function(*first, mode)
    raise TypeError(f"{name} is declared as ({given}) and takes no mode; declare it as ({expected}).")

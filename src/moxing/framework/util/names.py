"""Checks names that a caller passes, and suggests similar names for unknown ones."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from typing import Any

_MODES = ("TRAIN", "EVAL", "PREDICT", "EXPORT")


def nearest(text: str, known: Sequence[str], most: int = 3) -> list[str]:
    """Returns the names in `known` that are most similar to `text`, best first.

    Example:
      >>> nearest('resnet50', ['resnext_b_50', 'resnet_v1_50', 'vgg_16'], 2)
      ['resnet_v1_50', 'resnext_b_50']
      >>> nearest('qqq', ['vgg_16'])
      []
    """
    wanted = _letters(text)

    def similarity(name: str) -> float:
        other = _letters(name)
        # A common prefix counts more: names are cut off, or lack their version, more often than they begin wrongly.
        prefix = len(os.path.commonprefix([wanted, other])) / max(len(wanted), 1)
        return difflib.SequenceMatcher(None, wanted, other).ratio() + prefix

    ranked = sorted(known, key=similarity, reverse=True)
    return [name for name in ranked[:most] if similarity(name) >= 0.7]


def known_name(function: str, argument: str, value: Any, known: Sequence[str], advice: str = "") -> str:
    """Returns the name in `known` that a string or a member of an enumeration refers to.

    Args:
      function: the function, for the error message; empty for an argument of a command line.
      argument: the name of the argument, for the error message.
      value: the value of the argument.
      known: the valid names.
      advice: a sentence that ends the error message.

    Raises:
      ValueError: the name is unknown.

    Example:
      >>> known_name('get_model_fn', 'name', 'LeNet', ['lenet', 'vgg_16'])
      'lenet'
      >>> known_name('get_model_fn', 'name', 'vgg16', ['lenet', 'vgg_16'])
      Traceback (most recent call last):
      ValueError: get_model_fn(name='vgg16'): no such network; did you mean 'vgg_16'?
    """
    text = str(getattr(value, "value", value)).lower()
    if text in known:
        return text
    near = nearest(text, known)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"expected one of {', '.join(known)}."
    call = f"{function}({argument}={value!r})" if function else f"{argument}={value!r}"
    raise ValueError(f"{call}: no such network; {hint}{' ' if advice else ''}{advice}")


def known_mode(function: str, run_mode: Any) -> str:
    """Returns the value of a `mox.ModeKeys`, or of a string that names one.

    Raises:
      ValueError: it is not a mode.

    Example:
      >>> known_mode('get_model_fn', 'train')
      'TRAIN'
    """
    # By value: the class ModeKeys is in the executor, which this package must not import.
    text = str(getattr(run_mode, "value", run_mode)).upper()
    if text not in _MODES:
        raise ValueError(f"{function}(run_mode={run_mode!r}): expected one of mox.ModeKeys: {', '.join(_MODES)}.")
    return text


def _letters(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())

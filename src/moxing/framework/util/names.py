"""Names that a caller gives: the known ones, and the nearest of them when one is unknown."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from typing import Any

_MODES = ("TRAIN", "EVAL", "PREDICT", "EXPORT")


def nearest(text: str, known: Sequence[str], most: int = 3) -> list[str]:
    """The names of `known` that `text` is probably meant to be, best first.

    Example:
      >>> nearest('resnet50', ['resnext_b_50', 'resnet_v1_50', 'vgg_16'], 2)
      ['resnet_v1_50', 'resnext_b_50']
      >>> nearest('qqq', ['vgg_16'])
      []
    """
    wanted = _letters(text)

    def likeness(name: str) -> float:
        other = _letters(name)
        # A name is more often left unfinished, or without its version, than begun wrongly.
        begun = len(os.path.commonprefix([wanted, other])) / max(len(wanted), 1)
        return difflib.SequenceMatcher(None, wanted, other).ratio() + begun

    ranked = sorted(known, key=likeness, reverse=True)
    return [name for name in ranked[:most] if likeness(name) >= 0.7]


def known_name(function: str, argument: str, given: Any, known: Sequence[str]) -> str:
    """The one of `known` that `given`, a string or a member of an enumeration, names; else a ValueError.

    Args:
      function: who asks; empty where the argument is one of a command line.
      argument: what it is called.
      given: the value.
      known: the names there are.

    Example:
      >>> known_name('get_model_fn', 'name', 'LeNet', ['lenet', 'vgg_16'])
      'lenet'
      >>> known_name('get_model_fn', 'name', 'vgg16', ['lenet', 'vgg_16'])
      Traceback (most recent call last):
      ValueError: get_model_fn(name='vgg16'): no such network; did you mean 'vgg_16'?
    """
    text = str(getattr(given, "value", given)).lower()
    if text in known:
        return text
    near = nearest(text, known)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"expected one of {', '.join(known)}."
    call = f"{function}({argument}={given!r})" if function else f"{argument}={given!r}"
    raise ValueError(f"{call}: no such network; {hint}")


def known_mode(function: str, run_mode: Any) -> str:
    """The value of a `mox.ModeKeys`, or of a string that names one; else a ValueError.

    Example:
      >>> known_mode('get_model_fn', 'train')
      'TRAIN'
    """
    # By value: the class of the modes belongs to the executor, which stands above those who ask here.
    text = str(getattr(run_mode, "value", run_mode)).upper()
    if text not in _MODES:
        raise ValueError(f"{function}(run_mode={run_mode!r}): expected one of mox.ModeKeys: {', '.join(_MODES)}.")
    return text


def _letters(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())

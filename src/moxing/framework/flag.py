"""One command-line flag: its type, default and help, and how its value is parsed."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moxing.framework.util import names

TRUE_WORDS = frozenset({"true", "t", "1", "yes", "y", "on"})
FALSE_WORDS = frozenset({"false", "f", "0", "no", "n", "off"})


#: The value of a flag that is on the command line without a value.
NO_VALUE = object()


class FlagError(ValueError):
    """The command line, or the environment of a scheduler, is wrong.

    `moxing run` prints the message without a traceback and exits with code 2, since a retry would fail again.
    """


class FlagNotAvailableError(FlagError, NotImplementedError):
    """A flag requests a feature that this version does not have."""


class ScriptFlagError(FlagError):
    """A script reads a flag that does not exist or sets one to a wrong value; the traceback shows where."""


@dataclass(frozen=True)
class Flag:
    """One flag.

    Attributes:
      name: its name.
      kind: the type of its value.
      default: the default value.
      help: a line of help.
      choices: the only allowed values, if any.
      words: allowed values besides those of its type.
      bounds: the smallest and the largest number, if any.
    """

    name: str
    kind: type
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None

    def parse(self, text: Any) -> Any:
        """Returns the value for a text of the command line or a Python value of `set_flag`.

        Example:
          >>> Flag('num_gpus', int, 1, 'GPUs').parse('4')
          4
        """
        if text is None:
            return None
        if text is NO_VALUE:
            raise FlagError(f"--{self.name} needs a value: {self._expected()}.")
        if text in self.words:
            return text
        value = self._convert(text)
        if self.choices and value not in self.choices:
            raise FlagError(f"--{self.name}={text!r}: {expected_one_of(str(text), self.choices)}")
        if self.bounds is not None and not self.bounds[0] <= value <= self.bounds[1]:
            raise FlagError(f"--{self.name}={text}: expected {self._expected()}.")
        return value

    def _convert(self, text: Any) -> Any:
        try:
            if self.kind is bool:
                return _parse_bool(text)
            if self.kind is int and isinstance(text, bool | float) and text != int(text):
                raise ValueError(text)
            return self.kind(text)
        except (TypeError, ValueError):
            raise FlagError(f"--{self.name}={text!r}: expected {self._expected()}.") from None

    def _expected(self) -> str:
        bounds = "" if self.bounds is None else f" from {self.bounds[0]:,} to {self.bounds[1]:,}"
        return " or ".join([_KIND_NAMES[self.kind] + bounds, *self.words])


def expected_one_of(text: str, choices: Sequence[str]) -> str:
    """Returns the end of an error message for a value that is not in `choices`.

    Example:
      >>> expected_one_of('workers', ('ps', 'worker'))
      "expected one of ps, worker. Did you mean 'worker'?"
      >>> expected_one_of('chief', ('ps', 'worker'))
      'expected one of ps, worker.'
    """
    near = difflib.get_close_matches(text.lower(), choices, n=1) or names.nearest(text, choices, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"expected one of {', '.join(choices)}.{hint}"


_KIND_NAMES = {int: "an integer", float: "a number", bool: "True or False", str: "a string"}


def _parse_bool(text: Any) -> bool:
    word = str(text).strip().lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise ValueError(text)

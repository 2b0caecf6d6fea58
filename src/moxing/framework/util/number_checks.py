"""Checks whether an argument is a number."""

from __future__ import annotations

import numbers
from typing import Any


def is_number(value: Any) -> bool:
    """Returns True for a real number of Python or NumPy, and False for a bool.

    Example:
      >>> is_number(0.5), is_number(True), is_number('1')
      (True, False, False)
    """
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_integer(value: Any, least: int) -> bool:
    """Returns True for an integer of Python or NumPy that is at least `least`, and False for a bool.

    Example:
      >>> is_integer(3, least=1), is_integer(0, least=1), is_integer(3.0, least=1)
      (True, False, False)
    """
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= least

"""Checks of arguments that all datasets have."""

from __future__ import annotations

from moxing.framework.util.number_checks import is_integer


def check_counts(at_least: int = 1, **counts: int | None) -> None:
    """Raises an error for an argument that is neither None nor an integer of at least `at_least`.

    Example:
      >>> check_counts(batch_size=0)
      Traceback (most recent call last):
      ValueError: batch_size=0: expected a number from 1.
    """
    for name, value in counts.items():
        if value is not None and not is_integer(value, at_least):
            raise ValueError(f"{name}={value!r}: expected a number from {at_least}.")

"""Parametrised tests of all pairs of two lists, of which a part runs by default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def rotated(rows: Sequence[Any], columns: Sequence[Any], fast: int = 1) -> list[Any]:
    """All pairs. Of each row the next `fast` columns in turn are fast tests, the other pairs are slow ones.

    So every row and every column has a fast test, and `make test-slow` has the rest of the matrix.

    Args:
      rows: values of the first parameter.
      columns: values of the second one.
      fast: how many columns of a row are fast.
    """
    return [
        pytest.param(
            row,
            column,
            id=f"{_name(row)}-{_name(column)}",
            marks=[] if (second - first * fast) % len(columns) < fast else pytest.mark.slow,
        )
        for first, row in enumerate(rows)
        for second, column in enumerate(columns)
    ]


def _name(value: Any) -> str:
    return getattr(value, "__name__", str(value))

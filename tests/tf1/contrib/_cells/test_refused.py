"""Cells that are not available raise an error when they are built, not when they are imported."""

from __future__ import annotations

import pytest

from moxing.tf1 import contrib
from moxing.tf1.contrib._cells import refused


@pytest.mark.parametrize("name", refused._INSTEAD)
def test_the_error_names_the_cell_and_what_to_use(name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"tf\.contrib\.rnn\.{name} is not available; use "):
        getattr(contrib.rnn, name)(8)


def test_other_names_are_missing() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'GridCell'"):
        _ = refused.GridCell

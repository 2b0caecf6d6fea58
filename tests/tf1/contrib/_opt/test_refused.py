"""Optimizers that are not available raise an error when they are built, not when they are imported."""

from __future__ import annotations

import pytest

from moxing.tf1 import contrib
from moxing.tf1.contrib._opt import refused


@pytest.mark.parametrize("name", refused._INSTEAD)
def test_the_error_names_the_optimizer_and_what_to_use(name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"tf\.contrib\.opt\.{name} is not available; use "):
        getattr(contrib.opt, name)(0.1)


def test_other_names_are_missing() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Shampo'"):
        _ = refused.Shampo

"""Datasets on a real store, each test on a machine of its own."""

import pytest


@pytest.fixture(autouse=True)
def own_machine(machine):
    """Every test of this directory starts without an index or a cache."""

"""Modules that are a table of names."""

import sys
import types

import pytest

from moxing.tf1.contrib import _lazy


@pytest.fixture
def module(monkeypatch):
    module = types.ModuleType("tf1_contrib.part")
    module.__getattr__, module.__dir__ = _lazy.module_functions(
        module.__name__, _lazy.names(("math:", "sqrt"), ("os:path", "name=basename"))
    )
    module.__all__ = ["own", "sqrt"]
    module.own = 1
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_a_name_is_stored_after_its_first_use(module):
    assert "sqrt" not in vars(module)
    assert module.sqrt(9) == 3 and module.name("a/b") == "b"
    assert "sqrt" in vars(module)
    assert dir(module) == ["name", "own", "sqrt"]


def test_a_missing_name_is_an_error_with_a_suggestion(module):
    with pytest.raises(AttributeError, match=r"tf.contrib.part.sqr is not available; did you mean sqrt\?"):
        _ = module.sqr
    with pytest.raises(AttributeError, match="has no attribute '__wrapped__'"):
        _ = module.__wrapped__


def test_locations():
    assert _lazy.names(("a:b", "x y=z")) == {"x": "a:b.x", "y": "a:b.z"}
    assert _lazy.resolve("os:path.sep") == "/" and _lazy.resolve("math:") is sys.modules["math"]

"""Views of modules: more names for user code, the real module unchanged."""

import logging
import sys
import types

import pytest

from moxing.tf1.era.module_view import ModuleView, constants, live_view, note_once, real_module


@pytest.fixture
def library():
    module = types.ModuleType("library")
    module.old = 1
    module.kept = 2
    return module


def test_names_are_added_and_replaced_without_changing_the_module(library):
    view = ModuleView(library, constants(old=10, new=20))
    assert (view.old, view.new, view.kept) == (10, 20, 2)
    assert library.old == 1 and not hasattr(library, "new")
    assert {"old", "new", "kept"} <= set(dir(view)) and view.__name__ == "library"
    assert real_module(view) is library and real_module(library) is library


def test_writing_reaches_the_module(library):
    view = ModuleView(library, {})
    view.kept = 3
    view.fresh = 4
    assert (library.kept, library.fresh) == (3, 4)
    del view.fresh
    assert not hasattr(library, "fresh") and not hasattr(view, "fresh")
    library.late = 5
    assert view.late == 5


def test_values_are_made_on_first_use(library):
    calls = []
    view = ModuleView(library, {"expensive": lambda: calls.append(1) or "value"})
    assert calls == []
    assert (view.expensive, view.expensive, calls) == ("value", "value", [1])


def test_a_live_view_copies_nothing(library):
    view = live_view(library, constants(new=20))
    library.kept = 7
    assert (view.kept, view.new) == (7, 20) and "new" in dir(view)
    view.kept = 8
    assert library.kept == 8
    del view.kept
    assert not hasattr(library, "kept") and isinstance(view, types.ModuleType)
    with pytest.raises(AttributeError):
        _ = view.kept


def test_an_old_name_is_logged_once(library, caplog):
    caplog.set_level(logging.DEBUG, "moxing")
    view = live_view(library, constants(maxint=sys.maxsize))
    assert view.maxint == view.maxint == sys.maxsize
    note_once("library.maxint", "again")
    assert caplog.messages == [f"library.maxint is a name of an older version: served as {sys.maxsize}"]

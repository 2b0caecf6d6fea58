"""Old names of the standard library."""

import importlib

import pytest

from moxing.tf1.era import old_stdlib


@pytest.mark.parametrize("module", sorted(old_stdlib.NAMES))
def test_every_name_has_a_value(module):
    for name, make in old_stdlib.NAMES[module]().items():
        assert make() is not None, name


@pytest.mark.parametrize("old", sorted(set(old_stdlib.RENAMED_MODULES) - {"Tkinter"}))
def test_every_renamed_module_exists(old):
    for name in old_stdlib.RENAMED_MODULES[old]:
        importlib.import_module(name)


def test_values():
    values = {module: {name: make() for name, make in names().items()} for module, names in old_stdlib.NAMES.items()}

    def function(a, b=1, *rest, **more):
        pass

    assert tuple(values["inspect"]["getargspec"](function)) == (["a", "b"], "rest", "more", (1,))
    assert list(values["itertools"]["izip"]([1], [2])) == [(1, 2)]
    assert values["string"]["join"](["a", "b"]) == "a b"
    assert values["urllib"]["quote"]("a b") == "a%20b"

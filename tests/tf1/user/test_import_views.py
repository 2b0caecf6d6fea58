"""`importlib`, `runpy` and `builtins` as user modules see them."""

import builtins
import importlib
import importlib.util
import runpy

import pytest

from moxing.tf1.era import views
from moxing.tf1.user import import_views, user_modules


@pytest.fixture(autouse=True)
def installed():
    import_views.install()


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "old_style.py"
    path.write_text("value = long(3)\n")
    return str(path)


def test_what_they_load_is_a_user_module(script):
    assert views.view(runpy).run_path(script)["value"] == 3
    util = views.view(importlib).util
    spec = util.spec_from_file_location("old_style", script)
    assert type(spec.loader) is user_modules.UserSourceLoader
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.value == 3
    loader = views.view(importlib).machinery.SourceFileLoader("old_style", script)
    assert loader.get_code("old_style") is not None


def test_import_module_serves_old_names():
    import_module = views.view(importlib).import_module
    assert import_module("cPickle").__name__ == "pickle"
    assert import_module("time").clock.__name__ == "perf_counter"
    assert import_module(".machinery", "importlib").__name__ == "importlib.machinery"


def test_builtins_are_those_of_user_modules():
    assert views.view(builtins) is user_modules.user_builtins()
    assert not hasattr(builtins, "xrange")

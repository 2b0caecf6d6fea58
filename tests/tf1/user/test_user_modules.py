"""Which modules are the user's."""

import builtins
import json
import os
import sys

import pytest

import moxing as mox
from moxing.tf1.era.user_only_method import USER_MARK
from moxing.tf1.user import user_modules
from moxing.tf1.user.user_modules import UserModuleFinder, UserSourceLoader, is_user_module


@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("train", "/home/me/train.py", True),
        ("package.nets.small", "/home/me/package/nets/small.py", True),
        ("package", "/home/me/package/__init__.py", True),
        ("json.decoder", os.path.join(os.path.dirname(json.__file__), "decoder.py"), False),
        ("numpy", "/opt/site-packages/numpy/__init__.py", False),
        ("apt.cache", "/usr/lib/python3/dist-packages/apt/cache.py", False),
        ("moxing.tensorflow", "/home/me/moxing/tensorflow/__init__.py", False),
    ],
)
def test_by_name_and_path(name, path, expected):
    assert is_user_module(name, path) is expected


def test_a_directory_that_pip_filled_holds_libraries(tmp_path):
    (tmp_path / "thing-1.0.dist-info").mkdir()
    assert not is_user_module("thing", str(tmp_path / "thing.py"))


def test_the_paths_of_the_standard_library_are_known_before_the_finder():
    # Python 3.13 imports a module in `sysconfig.get_path`, which would enter a finder that calls it.
    assert os.path.realpath(os.path.dirname(os.__file__)) in user_modules._STANDARD_LIBRARY


def test_the_finder_loads_user_modules_and_legacy_packages(tmp_path, monkeypatch):
    (tmp_path / "users_own_module.py").write_text("values = list(xrange(2))\n")
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "aged_installed_module.py").write_text("value = unicode('x')\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(installed), *sys.path])
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    user_modules.install()
    import users_own_module

    assert users_own_module.values == [0, 1] and type(users_own_module.__loader__) is UserSourceLoader
    with pytest.raises(NameError):
        import aged_installed_module
    user_modules.install(["aged_installed_module"])
    import aged_installed_module

    assert aged_installed_module.value == "x"
    assert sum(isinstance(finder, UserModuleFinder) for finder in sys.meta_path) == 1


def test_changes_of_builtins_reach_user_modules(s3_folder, tmp_path):
    """`mox.file.shift` replaces `open`; programs add names of their own."""
    (tmp_path / "a").write_text("local")
    source = "with open(path) as a, file(path) as b:\n    result = a.read(), b.read()"
    code = compile(source, "user.py", "exec")

    def read(path):
        own = {"__builtins__": vars(user_modules.user_builtins()), "path": path}
        exec(code, own)
        return own["result"]

    mox.file.write(f"{s3_folder}/a", "stored")
    original = open
    mox.file.shift("os", "mox")
    try:
        assert read(f"{s3_folder}/a") == ("stored", "stored")
        assert read(str(tmp_path / "a")) == ("local", "local")
    finally:
        mox.file.shift("mox", "os")
    assert user_modules.user_builtins().open is original is user_modules.user_builtins().file
    builtins.profile = builtins.unicode = len
    assert user_modules.user_builtins().profile is user_modules.user_builtins().unicode is len
    del builtins.profile, builtins.unicode
    assert not hasattr(user_modules.user_builtins(), "profile")
    assert user_modules.user_builtins().unicode is str


def test_the_builtins_of_user_modules():
    own = user_modules.user_builtins()
    assert own.xrange is range and own.len is len and vars(own)[USER_MARK] is True
    assert own.__import__("tensorflow.flags").__name__ == "tensorflow"
    assert own.__import__("cPickle").__name__ == "pickle"
    moved = own.__import__("scipy.sparse.linalg.eigen.arpack", fromlist=["eigsh"])
    assert moved.__name__ == "scipy.sparse.linalg" and callable(moved.eigsh)
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        own.__import__("no_such_module")

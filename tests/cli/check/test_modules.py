"""Where a module comes from."""

import pytest

from moxing.cli.check import modules
from moxing.cli.check.modules import Program


@pytest.fixture
def program(tmp_path):
    for name in (
        "repo/.git/x",
        "repo/pkg/__init__.py",
        "repo/pkg/queue.py",
        "repo/deep/tools/json.py",
        "repo/yaml/data.txt",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "repo"


@pytest.mark.parametrize(
    ("module", "place"),
    [
        ("tensorflow.contrib.no_such", "facade"),
        ("tf_slim", "facade"),
        ("numpy.random", "library"),
        ("sys", "library"),
        ("pkg.model", "own"),
        ("queue", "own"),  # beside the file
        ("json", "library"),  # elsewhere in the program
        ("tools", "own"),
        ("yaml", "nowhere"),  # a directory of data, if the package is not installed
        ("cPickle", "nowhere"),
        ("no_such_module_", "nowhere"),
    ],
)
def test_places(program, module, place):
    file = str(program / "pkg" / "train.py")
    whole = Program.of(str(program), [str(program / "pkg" / "queue.py"), str(program / "deep" / "tools" / "json.py")])
    assert modules.place_of(module, file, whole) == place


def test_a_script_finds_the_packages_above_it(program):
    script = Program.of(str(program / "pkg"), [str(program / "pkg" / "queue.py")])
    assert modules.place_of("pkg.queue", str(program / "pkg" / "train.py"), script) == "own"
    assert modules.place_of("deep.tools", str(program / "pkg" / "train.py"), script) == "nowhere"


def test_modules_on_pythonpath_are_the_users(program, monkeypatch):
    monkeypatch.syspath_prepend(str(program / "deep"))
    assert modules.place_of("tools.json", "/no/such/train.py", Program((), frozenset())) == "own"


def test_only_harmless_libraries_are_imported():
    assert all(map(modules.may_be_imported, ("numpy", "scipy.misc", "urllib", "os.path")))
    assert not any(map(modules.may_be_imported, ("this", "antigravity", "cv2")))


def test_advice():
    assert modules.advice_for("cv2.cv") == "cv2 is not installed: pip install opencv-python-headless"
    assert modules.advice_for("no_such_module_") == "no_such_module_ is neither installed nor a module of the program"
    assert modules.python2_module("Queue") and not modules.python2_module("queue")

"""`moxing enable` and `moxing disable`: plain `python script.py` in one environment."""

import os
import subprocess
import sys
import sysconfig
import textwrap
import time
import venv
from pathlib import Path

import pytest

import moxing
from moxing.cli import autorun, enable
from moxing.cli.main import main


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A virtual environment of its own that sees the packages of this one; gives its Python and site directory."""
    home = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(home, symlinks=True)
    site = next(home.glob("lib/python*/site-packages"))
    paths = [str(Path(moxing.__file__).parent.parent), sysconfig.get_path("purelib")]
    (site / "a_paths.pth").write_text("\n".join(paths))
    return home / "bin" / "python", site


def run(python, *arguments, cwd):
    result = subprocess.run([str(python), *arguments], cwd=cwd, capture_output=True, text=True, timeout=60)
    return result.stdout + result.stderr


SCRIPT = """
import sys
def never():
    import moxing.tensorflow as mox
print('xrange' in dir(__builtins__), sys.argv[1:], sys.flags.optimize, __name__)
"""


def test_plain_python_launches_scripts_that_import_the_trainer(environment, tmp_path):
    python, site = environment
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "other.py").write_text(SCRIPT.replace("import moxing.tensorflow as mox", "'moxing.tensorflow'"))
    (tmp_path / "old.py").write_text("import moxing.tensorflow as mox\nprint 'hello'\n")
    (tmp_path / "parent.py").write_text(
        "import subprocess, sys\nif 0: import moxing.tensorflow\n"
        "subprocess.call([sys.executable, 'train.py', 'child'])\n"
    )
    assert run(python, "train.py", cwd=tmp_path) == "False [] 0 __main__\n"
    enable.enable(site)
    assert run(python, "train.py", "--x=1", cwd=tmp_path) == "True ['--x=1'] 0 __main__\n"
    assert run(python, "-O", "-u", "train.py", "-O", cwd=tmp_path) == "True ['-O'] 1 __main__\n"
    assert run(python, "other.py", cwd=tmp_path) == "False [] 0 __main__\n"
    assert "line 2 is Python 2" in run(python, "old.py", cwd=tmp_path)
    assert run(python, "parent.py", cwd=tmp_path) == "True ['child'] 0 __main__\n"
    assert run(python, "-c", "import sys; print(sys.argv, 'moxing' in sys.modules)", cwd=tmp_path) == "['-c'] False\n"
    assert "can't open file" in run(python, "missing.py", cwd=tmp_path)
    enable.disable(site)
    assert run(python, "train.py", cwd=tmp_path) == "False [] 0 __main__\n"


def test_an_interpreter_starts_after_moxing_is_gone(environment, tmp_path):
    python, site = environment
    (tmp_path / "train.py").write_text(SCRIPT)
    (site / "a_paths.pth").rename(site / "a_paths.gone")
    try:
        enable.enable(site)
        assert run(python, "train.py", cwd=tmp_path) == "False [] 0 __main__\n"
    finally:
        enable.disable(site)
        (site / "a_paths.gone").rename(site / "a_paths.pth")


def test_the_line_costs_next_to_nothing(tmp_path, monkeypatch):
    script = tmp_path / "script.py"
    script.write_text("import json\n" * 1000)
    monkeypatch.setattr(sys, "argv", [str(script)])
    before = set(sys.modules)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        exec(enable.LINE)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.001
    assert set(sys.modules) == before
    assert len(enable.LINE.splitlines()) == 1


def test_the_commands_say_what_they_did_and_where(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    path = tmp_path / enable.FILE_NAME
    assert main(["disable"]) == 0
    assert "Not enabled" in capsys.readouterr().out
    assert main(["enable"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Enabled:") and str(path) in said and sys.executable in said
    assert main(["enable"]) == 0
    assert capsys.readouterr().out.startswith("Already enabled:")
    assert path.read_text() == enable.LINE
    assert main(["disable"]) == 0
    assert str(path) in capsys.readouterr().out
    assert not path.exists()


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path, monkeypatch, capsys):
    missing = tmp_path / "file" / "site-packages"
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(missing))
    assert main(["enable"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and str(missing) in said.err and "moxing run" in said.err


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import moxing.tensorflow as mox", True),
        ("import os, moxing.tensorflow", True),
        ("from moxing import tensorflow as mox", True),
        ("from moxing.tensorflow.executor.hooks import FeedSessionRunHook", True),
        ("def f():\n  import moxing.tensorflow", True),
        ("import moxing.tensorflow as mox\nprint 'python 2'", True),
        ("import moxing as mox", False),
        ("from . import moxing", False),
        ("text = 'import moxing.tensorflow'", False),
        ("# import moxing.tensorflow", False),
        ("print 'import moxing.tensorflow'", False),
        ("import moxing.tensorflow_like", False),
        ("\0", False),
    ],
)
def test_which_scripts_qualify(source, expected):
    assert autorun.imports_trainer(textwrap.dedent(source).encode()) is expected


def test_no_loop(monkeypatch):
    monkeypatch.setattr(os, "execv", lambda *arguments: pytest.fail("executed"))
    monkeypatch.setenv("MOXING_AUTORUN", str(os.getpid()))
    autorun.start("train.py", b"import moxing.tensorflow")

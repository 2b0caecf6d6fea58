"""`moxing run`: what a script sees and what its caller gets back. No script here imports TensorFlow."""

import importlib.util
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from helpers.launcher import moxing
from moxing.cli import run
from moxing.cli.cluster import run as run_cluster
from moxing.framework import flags


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def test_missing_scripts_are_named(tmp_path):
    result = moxing("run", "no/such.py", cwd=tmp_path)
    assert result.returncode == 2
    assert "no/such.py" in result.stderr
    (tmp_path / "folder").mkdir()
    assert "folder is a directory" in moxing("run", "folder", cwd=tmp_path).stderr
    result = moxing("run", "-m", "no.such_module", cwd=tmp_path)
    assert result.returncode == 2
    assert "no.such_module" in result.stderr


def test_options_at_the_wrong_place_or_misspelled(tmp_path, capsys):
    write(tmp_path / "train.py", "import sys; print(sys.argv[1:])")
    result = moxing("run", "train.py", "--workers", "2", "--ps=1", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "['--workers', '2', '--ps=1']\n")
    assert "moxing run: warning: --workers comes after the script, which has no such flag, and is ign" in result.stderr
    assert "come before the script: moxing run --ps ... train.py" in result.stderr
    write(tmp_path / "flags.py", "workers = ps = 1")
    assert moxing("run", "train.py", "--workers", "2", "--ps=1", cwd=tmp_path).stderr == ""
    with pytest.raises(SystemExit, match="2"):
        run.main(["--worker", "2", "x.py"])
    assert {f"--{name}" for name in flags._RUN_OPTIONS} == set(run_cluster.OPTIONS)
    assert "unrecognized arguments: --worker. Did you mean --workers?" in capsys.readouterr().err


def test_a_script_runs_as_under_python(tmp_path):
    """Everything a script can see of how it was started is compared with plain Python."""
    write(
        tmp_path / "project" / "main.py",
        """
        '''The docstring.'''
        import inspect, os, pickle, sys, __main__

        def function():
            return 1

        print(__name__, __file__, __package__, __spec__, __doc__, __cached__ if '__cached__' in globals() else None)
        print(sys.argv, os.path.samefile(sys.path[0], os.path.dirname(__file__)), sys.modules['__main__'] is __main__)
        print(inspect.getsource(function), pickle.loads(pickle.dumps(function)) is function)
        print(type(__builtins__).__name__, sys.flags.optimize, 'tensorflow' in sys.modules)
        print(__main__.function is function, vars() is globals())
        """,
    )
    arguments = ["project/main.py", "--its", "-h", "--legacy", "x", "--", "pos"]
    plain = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True)
    ours = moxing("run", *arguments, cwd=tmp_path)
    assert plain.returncode == ours.returncode == 0, ours.stderr
    assert ours.stdout == plain.stdout
    assert ours.stderr == ""


def test_modules_of_the_user(tmp_path):
    """Pitfall 2-4-2: a module in a directory beside the script, with and without an __init__.py."""
    write(tmp_path / "project" / "module_dir" / "module_file.py", "value = [i for i in xrange(3)]\n")
    write(tmp_path / "project" / "package" / "__init__.py", "from .inner import value\nfrom . import inner as again\n")
    write(tmp_path / "project" / "package" / "inner.py", "import sys\nvalue = sys.maxint\n")
    write(tmp_path / "extra" / "on_path.py", "value = unicode('x')\n")
    write(tmp_path / "by_path.py", "value = long(3)\n")
    write(
        tmp_path / "project" / "main.py",
        """
        import importlib.util, runpy, sys
        from module_dir import module_file
        import package, package.inner as inner, on_path
        assert module_file.value == [0, 1, 2]
        assert package.value == inner.value == sys.maxsize and package.again is inner
        assert on_path.value == 'x'
        spec = importlib.util.spec_from_file_location('by_path', sys.argv[1])
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert module.value == runpy.run_path(sys.argv[1])['value'] == 3
        scope = {}
        exec('a = xrange(2)', scope)
        assert eval('list(a) + [raw_input]', scope)[:2] == [0, 1]
        execfile(sys.argv[1])
        assert value == 3
        import argparse, json
        assert not hasattr(json, 'xrange') and argparse.__builtins__ is not module_file.__builtins__
        import builtins
        builtins.everywhere = 5
        assert everywhere == 5
        print('done')
        """,
    )
    result = moxing(
        "run",
        "project/main.py",
        str(tmp_path / "by_path.py"),
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "extra")},
    )
    assert result.stdout == "done\n", result.stderr


def test_a_module_with_a_main(tmp_path):
    write(tmp_path / "package" / "__init__.py", "")
    write(tmp_path / "package" / "other.py", "value = list(xrange(2))\n")
    write(
        tmp_path / "package" / "train.py", "import sys\nfrom .other import value\nprint(__name__, value, sys.argv[1:])"
    )
    write(tmp_path / "package" / "__main__.py", "from . import train\n")
    result = moxing("run", "-m", "package.train", "--flag", cwd=tmp_path)
    assert result.stdout == "__main__ [0, 1] ['--flag']\n", result.stderr
    assert moxing("run", "-m", "package", "a", cwd=tmp_path).stdout == "package.train [0, 1] ['a']\n"


@pytest.mark.parametrize(
    ("statement", "code", "text"),
    [
        ("sys.exit(7)", 7, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit('the reason')", 1, "the reason\n"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
        ("import atexit; atexit.register(print, 'late', file=sys.stderr)", 0, "late\n"),
    ],
)
def test_exit_codes(tmp_path, statement, code, text):
    write(tmp_path / "main.py", f"import sys\n{statement}\n")
    result = moxing("run", "main.py", cwd=tmp_path)
    assert result.returncode == code
    assert text in result.stderr


def test_an_interrupt_ends_with_130(tmp_path):
    write(tmp_path / "main.py", "import time\nprint('up', flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "moxing", "run", "main.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"up\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"KeyboardInterrupt" in errors


def test_tracebacks_show_the_script_only(tmp_path):
    write(tmp_path / "helper.py", "import other\n")
    write(tmp_path / "other.py", "def fail():\n    raise ValueError('inside')\nfail()\n")
    write(tmp_path / "main.py", "import os\ntry:\n    {}['x']\nexcept KeyError:\n    import helper\n")
    plain = subprocess.run([sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True)
    ours = moxing("run", "main.py", cwd=tmp_path)
    assert ours.returncode == plain.returncode == 1
    assert ours.stderr == plain.stderr


def test_python_2_files_are_told_from_broken_ones(tmp_path):
    write(tmp_path / "old.py", "import os\nprint 'hello'\n")
    write(tmp_path / "main.py", "import old\n")
    write(tmp_path / "broken.py", "def f(:\n")
    for script in ("old.py", "main.py"):
        result = moxing("run", script, cwd=tmp_path)
        assert result.returncode == 1
        assert f"{tmp_path / 'old.py'}, line 2 is Python 2 (the print statement)." in result.stderr
        assert "2to3" in result.stderr and "moxing run --py2" in result.stderr
        assert "importlib" not in result.stderr and "moxing/tf1" not in result.stderr
    result = moxing("run", "broken.py", cwd=tmp_path)
    assert result.returncode == 1
    assert "SyntaxError" in result.stderr and "Python 2" not in result.stderr


@pytest.mark.skipif(importlib.util.find_spec("fissix") is None, reason="fissix, of the extra `py2`, is not installed")
def test_python_2_runs_converted_in_memory(tmp_path):
    write(tmp_path / "old" / "__init__.py", "import part\n")
    write(tmp_path / "old" / "part.py", "half = lambda n: n / 2\n")
    write(tmp_path / "main.py", "import old\nprint old.part.half(7)\nprint 'to the end'\nraise IOError, 'here'\n")
    before = (tmp_path / "main.py").read_bytes()
    result = moxing("run", "--py2", "main.py", cwd=tmp_path)
    assert result.returncode == 1 and result.stdout == "3\nto the end\n"
    assert "line 4, in <module>\n    raise IOError, 'here'\nOSError: here\n" in result.stderr
    assert "moxing" not in result.stderr.replace(str(tmp_path), "")
    # Nothing is written that a run without the option would read.
    assert (tmp_path / "main.py").read_bytes() == before and not list(tmp_path.rglob("*.pyc"))


def test_child_processes_see_the_same_modules(tmp_path):
    write(
        tmp_path / "main.py",
        """
        import multiprocessing, sys
        from concurrent.futures import ProcessPoolExecutor

        limit = sys.maxint

        def work(number):
            return number + len(xrange(2)), limit

        if __name__ == '__main__':
            for method in ('fork', 'spawn', 'forkserver'):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    assert pool.map(work, [1]) == [(3, sys.maxsize)], method
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context('spawn')) as pool:
                print(list(pool.map(work, [1]))[0][0])
        """,
    )
    result = moxing("run", "main.py", cwd=tmp_path)
    assert result.stdout == "3\n", result.stderr


def test_installed_packages_are_users_only_when_asked_for(tmp_path):
    site = tmp_path / "site-packages"
    write(site / "installed" / "__init__.py", "try:\n    value = xrange(1)\nexcept NameError:\n    value = None\n")
    write(tmp_path / "target" / "thing.py", "has_it = 'xrange' in dir(__builtins__) or 'xrange' in __builtins__\n")
    (tmp_path / "target" / "thing-1.0.dist-info").mkdir()
    write(tmp_path / "main.py", "import installed, thing\nprint(installed.value, thing.has_it)\n")
    environment = {"PYTHONPATH": f"{site}:{tmp_path / 'target'}"}
    assert moxing("run", "main.py", cwd=tmp_path, env=environment).stdout == "None False\n"
    result = moxing("run", "--legacy", "installed", "--legacy=thing", "main.py", cwd=tmp_path, env=environment)
    assert result.stdout == "range(0, 1) True\n", result.stderr


def test_the_packages_of_a_module_are_user_modules_too(tmp_path):
    write(tmp_path / "project" / "__init__.py", "import sys, cPickle\nlimit = sys.maxint\n")
    write(tmp_path / "project" / "train.py", "import project, sys\nprint(project.limit > 0, sys.argv[1:])\n")
    result = moxing("run", "-m", "project.train", "--x", cwd=tmp_path)
    assert result.stdout == "True ['--x']\n", result.stderr
    write(tmp_path / "broken" / "__init__.py", "import no_such_library\n")
    write(tmp_path / "broken" / "train.py", "")
    result = moxing("run", "-m", "broken.train", cwd=tmp_path)
    assert result.returncode == 1 and "No module named 'no_such_library'" in result.stderr

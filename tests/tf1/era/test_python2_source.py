"""Python 2 files, converted in memory."""

import builtins
import sys
import traceback

import pytest

from moxing.tf1.era import python2_division, python2_source

needs_fissix = pytest.mark.skipif(
    __import__("importlib.util").util.find_spec("fissix") is None, reason="fissix, of the extra `py2`, is not installed"
)


def run(source, path="old.py"):
    names = {"__builtins__": {**vars(builtins), **python2_division.BUILTINS, "unicode": str}}
    exec(python2_source.compile_python2(source.encode(), path), names)
    return names


SOURCE = """import sys
out = []
class Stream: write = staticmethod(out.append)
print >>Stream, 'a', 7 / 2,
try:
    raise ValueError, 'no'
except ValueError, error:
    text = `error.args`
found = {'k': 1}.has_key('k'), {'k': 1}.keys()[0], 2 <> 3, 0777, 10L, unicode('x')
lists = map(lambda (a, b): a, [(1, 2)])[0], zip([1], [2])[0], range(3) + [3], filter(None, [0, 1])[0]
if found:
\ttabs = 1
        tabs = 2
exec 'made = 3'
step = iter([5]).next()
"""


@needs_fissix
def test_the_constructs_of_python_2():
    names = run(SOURCE)
    assert "".join(names["out"]).split() == ["a", "3"]
    assert names["text"] == "('no',)"
    assert names["found"] == (True, "k", True, 511, 10, "x")
    assert names["lists"] == (1, (1, 2), [0, 1, 2, 3], 1)
    assert (names["tabs"], names["made"], names["step"]) == (2, 3, 5)


@needs_fissix
def test_line_numbers_are_those_of_the_file(tmp_path):
    path = tmp_path / "old.py"
    path.write_text("import sys\nprint 'a'\n\ndef f():\n    print 'b'\n    raise IOError, 'here'\nf()\n")
    try:
        run(path.read_text(), str(path))
    except OSError:
        shown = traceback.format_exc()
    assert "line 6, in f\n    raise IOError, 'here'" in shown


@needs_fissix
def test_print_as_a_function_python_3_and_neither(tmp_path):
    assert run("from __future__ import print_function\nx = [print]\n")["x"] == [print]
    assert run("x = f'{1 + 1}'")["x"] == "2"
    with pytest.raises(SyntaxError, match="neither Python 2 nor Python 3") as caught:
        run("x = 1\ndef f(:\n    pass\n")
    assert (caught.value.filename, caught.value.lineno) == ("old.py", 2)


def test_without_the_converter_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fissix", None)
    monkeypatch.setitem(sys.modules, "fissix.refactor", None)
    python2_source._tool.cache_clear()
    with pytest.raises(python2_source.ConverterMissing, match=r"pip install 'moxing-tensorflow\[py2\]'"):
        python2_source.enable()
    assert not python2_source.enabled()

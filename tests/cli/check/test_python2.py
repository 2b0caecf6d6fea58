"""Python 2 source becomes a syntax tree with the lines of the original."""

import ast
import warnings

import pytest

from moxing.cli.check import python2

SOURCE = """import tensorflow as tf
try:
\tprint "step %d" % 1,
        print >>log, tf.nn.relu
except ValueError, error:
  raise IOError, "text"
x = 0777 + 10L + ord(u'a') if a <> b else `c`
exec "code" in names
def f((a, b)): return tf.matmul(a, b)
"""


@pytest.fixture(params=["lib2to3", "fissix"])
def converter(request, monkeypatch):
    """Each of the packages that can convert, if it is installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(f"{request.param}.refactor")
    monkeypatch.setattr(python2, "_PACKAGES", (request.param,))
    python2.refactoring_tool.cache_clear()
    yield request.param
    python2.refactoring_tool.cache_clear()


def test_all_of_its_syntax(converter):
    tree = python2.parse(SOURCE)
    lines = {node.attr: node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert lines["relu"] == 4
    assert lines["matmul"] >= 9


def test_the_print_function_stays(converter):
    source = "from __future__ import print_function\nprint('a', file=f)\nraise E, 'x'\n"
    assert python2.parse(source).body[1].value.keywords[0].arg == "file"


def test_what_is_no_python_at_all():
    assert python2.parse("import (") is None


def test_without_a_converter(monkeypatch):
    monkeypatch.setattr(python2, "_PACKAGES", ("no_such_package",))
    python2.refactoring_tool.cache_clear()
    try:
        assert python2.parse("print 1") is None
        # Tabs mixed with spaces need no converter.
        assert python2.parse("if a:\n\tb\n        c\n").body[0].body[1].lineno == 3
    finally:
        python2.refactoring_tool.cache_clear()

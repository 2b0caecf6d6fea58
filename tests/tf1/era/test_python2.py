"""Python 2 in a user's file."""

import sys

import pytest

from moxing.tf1.era import python2


@pytest.mark.parametrize(
    ("source", "sign"),
    [
        ("print 'a'", "print statement"),
        ("print", None),
        ("print >>f, 'a'", None),
        ("print >>sys.stderr, 'a' % b,\n", None),
        ("if x:\n  print x, y\n", "print statement"),
        ("exec code in scope", "exec statement"),
        ("try:\n  pass\nexcept ValueError, e:\n  pass", "except Error, name"),
        ("try:\n  pass\nexcept (ValueError, IOError), e:\n  pass", "except Error, name"),
        ("raise ValueError, 'text'", "raise Error, text"),
        ("os.chmod(f, 0777)", "octal"),
        ("x = 10L", "long number"),
        ("x = `1`", "backticks"),
        ("if a <> b: pass", "<>"),
        ("s = ur'x'", "ur''"),
        ("if 1:\n\tx = 1\n        y = 2\n", "tabs and spaces"),
        ("def f(:", None),
        ("x = 'unfinished", None),
        ("print('a'", None),
    ],
)
def test_signs(source, sign):
    try:
        compile(source, "train.py", "exec")
    except SyntaxError as error:
        advice = python2.explain(error)
    else:
        advice = None
    if sign is None:
        assert advice is None
    else:
        assert "train.py, line" in advice and sign in advice
        assert "moxing run --py2" in advice
        assert "2to3" in advice or "expand" in advice


def test_later_pythons_have_no_2to3(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 13))
    advice = python2.explain(SyntaxError("Missing parentheses in call to 'print'", ("a.py", 3, 1, "print 1")))
    assert "up to 3.12" in advice and "a.py, line 3" in advice

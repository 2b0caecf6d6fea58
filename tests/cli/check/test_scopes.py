"""Which import a name stands for, where it is read."""

import ast
import textwrap

import pytest

from moxing.cli.check.scopes import Scopes


def origins(source, name, function=None):
    tree = ast.parse(textwrap.dedent(source))
    node = tree
    if function:
        node = next(one for one in ast.walk(tree) if getattr(one, "name", None) == function)
    return [str(origin) for origin in Scopes(tree).of(node).origins(name)]


@pytest.mark.parametrize(
    ("source", "name", "expected"),
    [
        ("import a.b.c", "a", ["a"]),
        ("import a.b.c as x", "x", ["a.b.c"]),
        ("from a.b import c as x", "x", ["a.b.c"]),
        ("import a\nx = a.b\ny = x.c", "y", ["a.b.c"]),
        ("from .a import x", "x", []),
        ("import x\nx = f()", "x", []),
        ("import x\nfor x in y: pass", "x", []),
        ("import a\nx, y = a.b, a.c", "x", []),
        ("x = x.y", "x", []),
        ("try:\n  import a as x\nexcept ImportError:\n  import b as x", "x", ["a", "b"]),
    ],
)
def test_names_of_a_module(source, name, expected):
    assert origins(source, name) == expected


FUNCTIONS = """
import tensorflow as tf
from tensorflow import layers

class Model:
  tf = None
  def method(self):
    return tf.nn

def shadowed(layers, *tf):
  return [layers for tf in layers]

def changes():
  global layers
  layers = make()

def local():
  import numpy as tf
  def inner():
    return tf.zeros
"""


def test_names_of_functions():
    assert origins(FUNCTIONS, "tf", "method") == ["tensorflow"]
    assert origins(FUNCTIONS, "tf", "Model") == []
    assert origins(FUNCTIONS, "tf", "shadowed") == origins(FUNCTIONS, "layers", "shadowed") == []
    assert origins(FUNCTIONS, "tf", "inner") == ["numpy"]
    # A function assigns to it with `global`.
    assert origins(FUNCTIONS, "layers") == []

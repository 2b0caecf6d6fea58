"""What a module imports, uses and calls."""

import ast
import textwrap

from moxing.cli.check.names import uses_of


def found(source):
    return uses_of(ast.parse(textwrap.dedent(source)))


def names(source, kind="name"):
    return [str(use.origins[0]) for use in found(source).uses if use.kind == kind]


def test_imports():
    source = """
    from __future__ import print_function
    import os, tensorflow.contrib.slim as slim
    from tensorflow.python.ops import rnn, math_ops as m
    from numpy import *
    from . import mine
    """
    assert names(source, "import") == [
        "os",
        "tensorflow.contrib.slim",
        "tensorflow.python.ops.rnn",
        "tensorflow.python.ops.math_ops",
        "numpy",
    ]


def test_chains_are_read_whole_and_everywhere():
    source = """
    import tensorflow as tf
    @tf.a
    class Model(tf.b.C):
        size = tf.c
        def build(self, x=tf.d):
            y = tf.e(x)[tf.f].g.h
            return [tf.g for tf.i in y if tf.h], (lambda z: tf.j(z)), f"{tf.k.l}"
    """
    assert sorted(name.removeprefix("tensorflow.") for name in names(source)) == sorted(
        ["a", "b.C", "c", "d", "e", "f", "g", "h", "j", "k.l"]
    )
    assert found(source).written == {"tensorflow.i"}


def test_arguments_of_calls():
    source = """
    import tensorflow as tf
    from tensorflow import concat
    tf.nn.relu(x, name='a')
    concat(*parts)
    """
    relu, concat = [use.call for use in found(source).uses if use.call]
    assert (relu.count, relu.names, relu.complete) == (1, ("name",), True)
    assert not concat.complete


def test_guards():
    source = """
    import tensorflow as tf
    try:
        import a
    except ImportError:
        import b
    try:
        tf.train()
    except Exception:
        tf.c
    if tf.__version__ < '1.4':
        tf.d
    """
    by_name = {str(use.origins[0]).removeprefix("tensorflow."): use.guards for use in found(source).uses}
    assert by_name["b"][0].instead_of is by_name["a"][0]
    # A whole program in a `try` is not guarded.
    assert by_name["train"] == by_name["c"] == by_name["__version__"] == ()
    assert len(by_name["d"]) == 1

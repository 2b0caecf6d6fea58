"""The division of Python 2."""

import ast

import numpy as np
import pytest

from moxing.tf1.era import python2_division


def run(source):
    names = {"np": np, **python2_division.BUILTINS}
    exec(compile(python2_division.rewrite(ast.parse(source)), "old.py", "exec"), names)
    return names


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("7 / 2", 3),
        ("-7 / 2", -4),
        ("True / 2", 0),
        ("7 / 2.0", 3.5),
        ("7.0 / 2", 3.5),
        ("(1 + 7 / 2) / 2", 2),
        ("np.int64(7) / 2", 3),
        ("7 / np.float32(2)", 3.5),
        ("list(np.array([7, -7]) / 2)", [3, -4]),
        ("list(np.array([7.0]) / 2)", [3.5]),
    ],
)
def test_whole_numbers_round_down(expression, expected):
    assert run(f"x = {expression}")["x"] == expected


def test_in_place_for_names_attributes_and_items_which_are_evaluated_once():
    names = run(
        "class Box: n = 7\n"
        "calls = []\n"
        "def box():\n    calls.append(1)\n    return Box\n"
        "x = 7\nx /= 2\n"
        "box().n /= 2\n"
        "items = [9, 8]\nitems[len(calls)] /= 3\n"
        "array = same = np.array([9, 8, 7])\narray /= 2\narray[1:] /= 2\n"
        "table = np.ones([2, 2])\ntable[:, 0] /= 4\n"
    )
    assert (names["x"], names["Box"].n, names["items"]) == (3, 3, [9, 2]) and len(names["calls"]) == 1
    assert names["array"] is names["same"] and names["array"].tolist() == [4, 2, 1]
    assert names["table"].tolist() == [[0.25, 1], [0.25, 1]]


def test_classes_decide_with_the_methods_of_python_2():
    source = "class A:\n    def __div__(self, other): return 'div'\n    def __rdiv__(self, other): return 'rdiv'\n"
    names = run(source + "x, y = A() / 2, 2 / A()")
    assert (names["x"], names["y"]) == ("div", "rdiv")


def test_a_file_with_true_division_is_not_changed():
    assert run("from __future__ import division\nx = 7 / 2")["x"] == 3.5

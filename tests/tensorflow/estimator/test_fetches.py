"""Nested fetches."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

from moxing.tensorflow.estimator.fetches import leaves, map_leaves

Pair = namedtuple("Pair", ["a", "b"])


def test_every_structure_keeps_its_type():
    key = object()
    nested = {"caller": [1, (2, 3)], key: Pair(4, OrderedDict(x=5))}
    doubled = map_leaves(lambda value: value * 2, nested)
    assert doubled == {"caller": [2, (4, 6)], key: Pair(8, OrderedDict(x=10))}
    assert type(doubled[key]) is Pair and type(doubled[key].b) is OrderedDict
    assert list(leaves(nested)) == [1, 2, 3, 4, 5]

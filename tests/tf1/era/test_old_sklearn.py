"""What scikit-learn dropped."""

import itertools

import numpy as np

from moxing.tf1.era import old_sklearn


def test_the_assignment_is_the_cheapest():
    costs = np.random.RandomState(0).rand(4, 4)
    best = min(itertools.permutations(range(4)), key=lambda order: costs[range(4), order].sum())
    assert old_sklearn.linear_assignment(costs).tolist() == [list(pair) for pair in enumerate(best)]

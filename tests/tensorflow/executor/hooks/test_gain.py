"""Whether a metric has improved."""

from __future__ import annotations

import json

import pytest

from moxing.tensorflow.executor.hooks.gain import Best, higher_is_better


@pytest.mark.parametrize(
    ("monitor", "mode", "higher"),
    [
        ("accuracy", "auto", True),
        ("Top_5", "auto", True),
        ("mean_iou", "auto", True),
        ("loss", "auto", False),
        ("perplexity", "auto", False),
        ("loss", "max", True),
        ("accuracy", "min", False),
    ],
)
def test_higher_is_better(monitor, mode, higher):
    assert higher_is_better(monitor, mode) is higher


def test_the_first_value_is_an_improvement_unless_it_is_nan():
    best = Best(higher=True, min_delta=0.0)
    assert [best.see(value) for value in (float("nan"), -5.0)] == [False, True]
    assert (best.value, best.waited) == (-5.0, 0)


@pytest.mark.parametrize(
    ("higher", "values"), [(True, [1.0, 1.25, 1.5, 1.5, 1.76]), (False, [1.0, 0.75, 0.5, 0.5, 0.24])]
)
def test_a_gain_of_at_most_min_delta_is_none(higher, values):
    """Gains are counted from the best value, not from the last one."""
    best = Best(higher, min_delta=0.25)
    assert [best.see(value) for value in values] == [True, False, True, False, True]
    assert best.value == values[-1]


def test_waited_counts_the_values_since_the_best():
    best = Best(higher=False, min_delta=0.0)
    waited = []
    for value in (3.0, 3.0, float("nan"), 2.0, 5.0):
        best.see(value)
        waited.append(best.waited)
    assert waited == [0, 1, 2, 0, 1]


def test_the_state_goes_through_json():
    best = Best(higher=True, min_delta=0.0)
    for value in (1.0, 0.5):
        best.see(value)
    again = Best(higher=True, min_delta=0.0)
    again.load_state(json.loads(json.dumps(best.state())))
    assert (again.value, again.waited) == (1.0, 1)
    assert not again.see(1.0)

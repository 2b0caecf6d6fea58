"""The client of the exported model: what it prints."""

import numpy as np

from moxing.demo import predict


def test_brightness_becomes_ink():
    assert predict.picture(np.array([[0, 8, 16]])) == ["  ==@@"]


def test_columns_of_different_widths():
    assert predict.side_by_side([["a", "bcd"], ["1", ""]], gap="|") == "a  |1\nbcd|"


def test_a_wrong_prediction_is_always_shown():
    labels = np.array([0, 1, 2, 3, 4])
    assert predict.to_show(labels, labels) == [0, 1, 2, 3]
    assert predict.to_show(np.array([0, 1, 2, 9, 4]), labels) == [0, 1, 2, 3]

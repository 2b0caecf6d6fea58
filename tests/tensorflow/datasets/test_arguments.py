"""Checks of arguments."""

from __future__ import annotations

import numpy as np
import pytest

from moxing.tensorflow.datasets.arguments import check_counts


def test_good_counts():
    check_counts(batch_size=None, num_readers=1, capacity=np.int64(3))
    check_counts(at_least=0, private_num_threads=0)


@pytest.mark.parametrize("value", [0, -1, 1.5, "2", True])
def test_wrong_counts_are_named(value):
    with pytest.raises(ValueError, match="num_readers=.*: expected a number from 1"):
        check_counts(batch_size=1, num_readers=value)

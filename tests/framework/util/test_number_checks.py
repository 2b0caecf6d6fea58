"""What counts as a number."""

import numpy as np
import pytest

from moxing.framework.util.number_checks import is_integer, is_number


@pytest.mark.parametrize("value", [1, 0.5, np.float32(1), np.int64(3)])
def test_numbers(value):
    assert is_number(value)


@pytest.mark.parametrize("value", [True, np.bool_(True), "1", None, 1j, [1]])
def test_other_values(value):
    assert not is_number(value) and not is_integer(value, least=0)


def test_integers_have_a_lower_bound():
    assert is_integer(np.int32(2), least=2) and not is_integer(1, least=2) and not is_integer(2.0, least=0)

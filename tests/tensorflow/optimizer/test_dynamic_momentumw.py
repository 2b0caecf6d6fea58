"""DyMomentumWOptimizer against NumPy."""

from __future__ import annotations

import pytest
from dynamic_updates import check_twenty_steps

from moxing.tensorflow.optimizer.dynamic_momentumw import DyMomentumWOptimizer


@pytest.mark.parametrize("decay", [0.0, 0.05])
@pytest.mark.parametrize("lars", [False, True])
@pytest.mark.parametrize("nesterov", [False, True])
def test_twenty_steps_equal_numpy(nesterov, lars, decay):
    check_twenty_steps(DyMomentumWOptimizer, True, nesterov, lars, decay)

"""Nadam against NumPy."""

from __future__ import annotations

import pytest
from updates import OURS, RATE, STEPS, Trained, close, computed, nadam

from moxing.tensorflow.optimizer.factory import get_optimizer_fn


@pytest.mark.parametrize(
    ("arguments", "update"),
    [
        (OURS, nadam),
    ],
)
def test_twenty_steps_equal_numpy(arguments, update):
    trained = Trained(get_optimizer_fn("nadam", RATE, **arguments))
    close(trained.run(), computed(update))
    assert trained.session.run(trained.step) == STEPS

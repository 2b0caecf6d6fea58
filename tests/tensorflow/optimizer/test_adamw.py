"""AdamW against NumPy."""

from __future__ import annotations

import pytest
from updates import OURS, RATE, STEPS, Trained, adamw, close, computed

from moxing.tensorflow.optimizer.factory import get_optimizer_fn


@pytest.mark.parametrize(
    ("arguments", "update"),
    [
        ({"weight_decay": 0.05, **OURS}, adamw()),
        ({"weight_decay": 0.05, "exclude": ["bias"], **OURS}, adamw(exclude=["bias"])),
        ({"weight_decay": 0.0, **OURS}, adamw(decay=0.0)),
    ],
)
def test_twenty_steps_equal_numpy(arguments, update):
    trained = Trained(get_optimizer_fn("adamw", RATE, **arguments))
    close(trained.run(), computed(update))
    assert trained.session.run(trained.step) == STEPS

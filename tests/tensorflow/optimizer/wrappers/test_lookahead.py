"""Lookahead against NumPy."""

from __future__ import annotations

import numpy as np
from updates import (
    FIRST,
    Trained,
    close,
    computed,
    momentum,
    wrapped,
)


def test_lookahead():
    slow = {name: np.array(value) for name, value in FIRST.items()}
    fast = momentum()

    def update(w, g, state, name):
        w = fast(w, g, state, name)
        if state["t"] % 3 == 0:
            slow[name] += 0.25 * (w - slow[name])
            return np.array(slow[name])
        return w

    trained = Trained(wrapped("lookahead", k=3, alpha=0.25))
    close(trained.run(), computed(update))
    with trained.graph.as_default():
        slots = {name: trained.optimizer.get_slot(variable, "slow") for name, variable in trained.variables.items()}
    close(trained.session.run(slots), slow)

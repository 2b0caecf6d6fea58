"""Moving averages of the weights against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from updates import (
    FIRST,
    Trained,
    close,
    computed,
    momentum,
    wrapped,
)

from moxing.tensorflow.optimizer.wrappers.ema import averaged_name


@pytest.mark.parametrize("warm_up", [False, True])
def test_ema(warm_up):
    average = {name: np.array(value) for name, value in FIRST.items()}
    fast = momentum()

    def update(w, g, state, name):
        w = fast(w, g, state, name)
        done = state["t"] - 1
        decay = min(0.75, (1 + done) / (10 + done)) if warm_up else 0.75
        average[name] = decay * average[name] + (1 - decay) * w
        return w

    trained = Trained(wrapped("ema", decay=0.75, warm_up=warm_up))
    close(trained.run(), computed(update))
    averages = trained.optimizer.averages()
    assert {key: value.op.name for key, value in averages.items()} == {
        f"net/{name}": f"net/{name}/ExponentialMovingAverage" for name in FIRST
    }
    close(trained.session.run({name: averages[f"net/{name}"] for name in FIRST}), average)


def test_ema_has_the_names_of_tensorflow():
    with tf.Graph().as_default():
        w = tf.get_variable("net/w", [2], use_resource=True)
        average = tf.train.ExponentialMovingAverage(0.9)
        average.apply([w])
        assert average.average_name(w) == averaged_name(w)

"""Arguments of evaluation hooks."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"monitor": "los"}, "monitor='los'"),
        ({"mode": "best"}, "mode='best'"),
        ({"patience": -1}, "patience=-1"),
        ({"min_delta": -0.1}, "min_delta=-0.1"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"samples_in_train": 1.5}, "samples_in_train=1.5"),
        ({"samples_in_eval": 0}, "samples_in_eval=0"),
        ({"evaluate_every_n_epochs": 0}, "evaluate_every_n_epochs=0"),
        ({"monitor_info": {}}, "monitor_info={}"),
        ({"restore_best": 1}, "restore_best=1"),
        ({"input_fn": "eval"}, "input_fn='eval'"),
    ],
)
def test_wrong_arguments(changes, words):
    with tf.Graph().as_default(), pytest.raises(ValueError, match="expected") as caught:
        good = {"monitor_info": {"loss": tf.constant(1.0)}, "monitor": "loss", "batch_size": 1, "samples_in_train": 1}
        mox.EarlyStoppingHook(**{**good, **changes})
    assert words in str(caught.value)
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"monitor_info\['loss'\].*reduce_mean"):
        mox.LogEvaluationMetricHook({"loss": tf.constant([1.0])}, 1, 1)

"""Which samples an evaluation takes, and what it averages."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from evaluation_runs import evaluated, log_hook, run


@pytest.mark.parametrize(("samples", "mean"), [(None, 4.5), (10, 4.5), (7, 3.0), (4, 1.5), (1, 0.0)])
def test_exactly_so_many_samples(samples, mean, caplog):
    caplog.set_level("INFO")
    run(log_hook(samples))
    assert evaluated(caplog, "[V]") == [(9, f"mean: {mean:.3f} w: -10.000"), (19, f"mean: {mean:.3f} w: -20.000")]


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize(("samples", "mean"), [(None, 4.5), (7, 3.0), (3, 1.0)])
def test_batches_of_the_script_are_cut(samples, mean, pairs, caplog):
    caplog.set_level("INFO")

    def input_fn(mode, **kwargs):
        dataset = tf.data.Dataset.range(10).map(lambda number: tf.cast(number, tf.float32))
        dataset = (dataset.repeat() if mode == "TRAIN" else dataset).batch(4)
        if pairs:
            dataset = dataset.map(lambda batch: (batch, {"negative": -batch, "sparse": tf.sparse.from_dense(batch)}))
        element = dataset.make_one_shot_iterator().get_next()
        return [element[0], element[1]["negative"], element[1]["sparse"]] if pairs else element

    run(log_hook(samples), input_fn=input_fn, batch_size=None)
    assert [text.split()[1] for _, text in evaluated(caplog, "[V]")] == [f"{mean:.3f}"] * 2

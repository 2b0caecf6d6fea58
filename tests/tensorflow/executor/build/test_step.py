"""What a step logs, summarises and checks on several towers."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tower_runs import DECAY, UPDATES, VALUES, Reference, model_fn, momentum, run, summaries

import moxing.tensorflow as mox


@pytest.mark.parametrize("towers", [2, 3])
@pytest.mark.parametrize("update", UPDATES)
def test_all_towers_are_logged_where_that_is_wanted(update, towers, tmp_path):
    mox.set_flag("log_first_clone", False)
    run(gpus=towers, update=update, log_dir=str(tmp_path), save_summary_steps=1)
    reference = Reference().train(towers)
    np.testing.assert_allclose(summaries(tmp_path, "loss"), reference.of_all, rtol=1e-5)


@pytest.mark.parametrize(("towers", "first_clone"), [(1, True), (2, True), (2, False), (3, False)])
def test_eval_means_over_all_samples(towers, first_clone, tmp_path, caplog):
    caplog.set_level("INFO", logger="tensorflow")
    run(gpus=1, log_dir=str(tmp_path), max_number_of_steps=3)
    mox.set_flag("log_first_clone", first_clone)
    result = run("EVAL", gpus=towers, checkpoint_path=str(tmp_path), log_every_n_steps=1)
    reference = Reference().train(1, steps=3)
    error = reference.x @ reference.w + reference.b - reference.y
    loss = (error**2).mean() + DECAY * (reference.w**2).sum() / 2
    assert result.samples == 100
    np.testing.assert_allclose(result.log_info["loss"], loss, rtol=1e-5)
    np.testing.assert_allclose(result.log_info["y"], reference.y.mean(), rtol=1e-5)
    (line,) = [line for line in caplog.messages if line.startswith("[EVAL]")]
    assert f"samples: 100\tloss: {loss:.3f}" in line
    # The last periodic line is that of the odd tail.
    printed = [float(line.split("y: ")[1]) for line in caplog.messages if re.match(r"step: .*y: ", line)]
    rows = reference.y[len(printed[:-1]) * 7 * towers :]
    expected = rows[:7] if first_clone else rows
    assert printed[-1] == pytest.approx(expected.mean(), abs=6e-4)


@pytest.mark.slow
def test_summaries_are_written_once(tmp_path):
    def with_summary(inputs, mode):
        spec = model_fn(inputs, mode)
        tf.summary.scalar("mine", spec.loss)
        tf.summary.histogram("values", inputs[1])
        return spec

    def with_rate():
        tf.summary.scalar("rate", 0.1)
        return momentum()

    for update in UPDATES:
        directory = tmp_path / update
        run(
            gpus=3,
            update=update,
            model_fn=with_summary,
            optimizer_fn=with_rate,
            log_dir=str(directory),
            save_summary_steps=1,
        )
        (path,) = directory.glob("events*")
        tags = [value.tag for event in tf.train.summary_iterator(str(path)) for value in event.summary.value]
        assert sorted(set(tags)) == ["learning_rate", "loss", "mine", "rate", "size", "values", "y"]
        assert len(tags) == 5 * 7
        np.testing.assert_allclose(summaries(directory, "mine"), Reference().train(3).of_first, rtol=1e-5)


def test_a_loss_that_is_not_finite_on_the_second_tower_alone_ends_the_run(tmp_path):
    def of_second(inputs, mode):
        x, y = inputs
        spec = model_fn([x, y], mode)
        bad = tf.reduce_any(tf.equal(y, VALUES[10]))  # row 10 is in the second batch
        return mox.ModelSpec(loss=tf.where(bad, spec.loss * np.nan, spec.loss))

    with pytest.raises(mox.executor.NotFiniteError, match="Step 0"):
        run(model_fn=of_second)

"""Several towers compute what NumPy computes with a batch that is so many times as large; nothing else changes."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tower_runs import ROWS, UPDATES, VALUES, Reference, batches, checkpoint, model_fn, run, samples, summaries

import moxing.tensorflow as mox
from moxing.tensorflow.executor.loop.step_loop import StepLoop


@pytest.mark.parametrize("towers", [2, 3])
@pytest.mark.parametrize("update", UPDATES)
def test_weights_and_every_loss_equal_numpy(update, towers, tmp_path, steppers):
    result = run(gpus=towers, update=update, log_dir=str(tmp_path), save_summary_steps=1)
    reference = Reference().train(towers)
    reference.check(tmp_path)
    np.testing.assert_allclose(summaries(tmp_path, "loss"), reference.of_first, rtol=1e-5)
    np.testing.assert_allclose(result.log_info["loss"], reference.of_first[-1], rtol=1e-5)
    assert (result.global_step, result.samples) == (len(reference.of_first), 100)
    assert [type(stepper) for stepper in steppers] == [StepLoop]


@pytest.mark.parametrize("update", UPDATES)
def test_many_steps_per_call_equal_single_steps(update, tmp_path, steppers):
    class EveryStep(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return None

    run(update=update, log_dir=str(tmp_path / "many"))
    run(
        update=update,
        log_dir=str(tmp_path / "single"),
        model_fn=lambda inputs, mode: model_fn(inputs, mode, [EveryStep()]),
    )
    assert [stepper.many for stepper in steppers] == [True, False]
    one, other = checkpoint(tmp_path / "many"), checkpoint(tmp_path / "single")
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


@pytest.mark.parametrize("update", UPDATES)
def test_batches_of_input_fn(update, tmp_path):
    result = run(update=update, log_dir=str(tmp_path), input_fn=batches, auto_batch=False)
    Reference().train(2).check(tmp_path)
    assert result.samples == 100


def test_endless_data(tmp_path):
    result = run(log_dir=str(tmp_path), input_fn=lambda mode: samples(mode, None), max_number_of_steps=20)
    Reference(epochs=6).train(2, steps=20).check(tmp_path)
    assert result.samples == 280


def test_fewer_batches_than_towers(tmp_path):
    """Ten rows are two batches, for four towers."""

    def few(mode):
        data = tf.data.Dataset.from_tensor_slices((ROWS[:10], VALUES[:10]))
        return tf.data.make_one_shot_iterator(data).get_next()

    result = run(gpus=4, log_dir=str(tmp_path), input_fn=few)
    reference = Reference()
    reference.x, reference.y = reference.x[:10], reference.y[:10]
    reference.train(4).check(tmp_path)
    assert (result.global_step, result.samples) == (1, 10)


def test_queues_feed_every_tower_another_batch(tmp_path):
    def queued(mode):
        return tf.train.slice_input_producer([ROWS, VALUES], num_epochs=None, shuffle=False)

    result = run(input_fn=queued, log_dir=str(tmp_path), max_number_of_steps=20)
    Reference(epochs=6).train(2, steps=20).check(tmp_path)
    assert result.samples == 280


def test_a_clone_on_cpu_and_parameters_on_cpu_change_no_bit(tmp_path):
    run(log_dir=str(tmp_path / "plain"))
    mox.set_flag("clone_on_cpu", True)
    mox.set_flag("local_parameter_device", "cpu")
    run(log_dir=str(tmp_path / "cpu"))
    one, other = checkpoint(tmp_path / "plain"), checkpoint(tmp_path / "cpu")
    assert all(np.array_equal(value, other[name]) for name, value in one.items())


ONE, TWO, COPIES, ON_HOST = (1, None), (2, "parameter_server"), (3, "replicated"), (2, "replicated_host")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [(ONE, TWO), (TWO, ONE), (ONE, COPIES), (COPIES, ONE), (TWO, COPIES), (COPIES, ON_HOST), (ON_HOST, TWO)],
)
def test_checkpoints_move_between_layouts(first, second, tmp_path):
    """Weights, momentum and the place in the data go on where the other layout left them."""
    result = run(gpus=first[0], update=first[1], log_dir=str(tmp_path), max_number_of_steps=2)
    run(gpus=second[0], update=second[1], log_dir=str(tmp_path))
    assert result.global_step == 2
    Reference().train(first[0], steps=2).train(second[0]).check(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1), (2, 3)])
def test_batches_of_input_fn_go_on_at_their_place(first, second, tmp_path):
    for gpus, steps in ((first, 2), (second, 10**6)):
        run(gpus=gpus, log_dir=str(tmp_path), max_number_of_steps=steps, input_fn=batches, auto_batch=False)
    Reference().train(first, steps=2).train(second).check(tmp_path)


@pytest.mark.parametrize("update", UPDATES)
def test_warm_start_reaches_every_tower(update, tmp_path):
    """The copies take the values of the checkpoint, not those of the initializers."""
    run(gpus=1, log_dir=str(tmp_path / "first"))
    mox.set_flag("checkpoint_exclude_patterns", "global_step,Momentum")
    start = Reference().train(1)
    run(update=update, log_dir=str(tmp_path / "second"), checkpoint_path=str(tmp_path / "first"))
    reference = Reference()
    reference.w, reference.b = start.w, start.b
    reference.train(2).check(tmp_path / "second")


def test_throughput_counts_all_towers(tmp_path, caplog, monkeypatch):
    """A clock that goes on by a second a look makes rates comparable."""
    from moxing.tensorflow.executor.actions import log

    caplog.set_level("INFO", logger="tensorflow")

    class Clock:
        now = 0.0

        @classmethod
        def perf_counter(cls):
            cls.now += 1.0
            return cls.now

    rates = []
    for gpus, batch in ((1, 7), (2, 7), (2, None)):
        Clock.now = 0.0
        caplog.clear()
        monkeypatch.setattr(log, "time", Clock)
        input_fn = samples if batch else batches
        run(gpus=gpus, batch_size=batch, input_fn=input_fn, max_number_of_steps=5, log_every_n_steps=2)
        rates.append([float(rate) for line in caplog.messages for rate in re.findall(r"sample/sec: ([0-9.]+)", line)])
    assert rates[0][1:] == pytest.approx(np.asarray(rates[1][1:]) / 2)
    assert rates[1] == rates[2]


def test_one_warning_where_gpus_are_missing(caplog):
    caplog.set_level("WARNING", logger="tensorflow")
    run(gpus=3, max_number_of_steps=2)
    assert [record.getMessage() for record in caplog.records] == [
        "--num_gpus=3, but this machine has 0: the 3 towers run on logical CPU devices. A step still takes 3 batches."
    ]


@pytest.mark.parametrize("gpus", [0, -1])
def test_a_number_of_gpus_that_is_none(gpus):
    with pytest.raises(ValueError, match=f"--num_gpus={gpus}: expected 1 or more"):
        run(gpus=gpus)

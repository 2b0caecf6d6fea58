"""What `output_fn` gets."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tower_runs import VALUES, model_fn, run, samples

import moxing.tensorflow as mox
from moxing.tensorflow.executor.hooks.outputs import OutputHook


@pytest.mark.parametrize(("towers", "every"), [(1, 2), (2, 1), (2, 3), (3, 2), (3, 100), (4, 4)])
def test_predict_gives_every_sample_once_in_order(towers, every, tmp_path, caplog):
    caplog.set_level("INFO", logger="tensorflow")
    run(gpus=1, log_dir=str(tmp_path), max_number_of_steps=1)
    calls = []
    run("PREDICT", gpus=towers, checkpoint_path=str(tmp_path), output_fn=calls.append, output_every_n_steps=every)
    got = [output["y"] for call in calls for output in call]
    np.testing.assert_array_equal(np.concatenate(got), np.tile(VALUES, 2))
    assert [len(part) for part in got] == [7] * 14 + [2]
    # A call has a dict for every tower of so many steps, in the order of the steps and in them of the towers.
    assert all(len(call) == every * towers for call in calls[:-1])
    assert "\t[100 examples]" in caplog.messages


def test_output_in_training(tmp_path):
    calls = []
    run(
        output_fn=calls.append, output_every_n_steps=3, input_fn=lambda mode: samples(mode, None), max_number_of_steps=6
    )
    assert [len(call) for call in calls] == [6, 6]
    got = np.concatenate([output["y"] for call in calls for output in call])
    np.testing.assert_array_equal(got, np.tile(VALUES, 2)[:84])


def test_other_outputs_on_the_second_tower():
    towers = []

    def uneven(inputs, mode):
        towers.append(1)
        return mox.ModelSpec(loss=model_fn(inputs, mode).loss, output_info={f"of_{len(towers)}": inputs[0]})

    with pytest.raises(ValueError, match=r"output_info \['of_2'\] for tower 1, and \['of_1'\] for the first one"):
        run(model_fn=uneven, output_fn=print, output_every_n_steps=1)


def deliver(hook, session, steps):
    """Runs steps with the hook, then ends it."""
    for _ in range(steps):
        arguments = hook.before_run(None)
        hook.after_run(None, tf.train.SessionRunValues(session.run(arguments.fetches), None, None))
    hook.end(session)


def test_outputs_are_in_the_order_of_steps_and_towers():
    calls = []
    with tf.Graph().as_default(), tf.Session() as session:
        number = tf.data.make_one_shot_iterator(tf.data.Dataset.range(5)).get_next()
        hook = OutputHook(calls.append, [{"n": number}, {"n": -number}], 2)
        deliver(hook, session, 5)
    assert [[int(output["n"]) for output in call] for call in calls] == [[0, 0, 1, -1], [2, -2, 3, -3], [4, -4]]


def test_outputs_of_padding_are_dropped():
    calls = []
    with tf.Graph().as_default(), tf.Session() as session:
        hook = OutputHook(
            calls.append, [{"n": tf.constant(1)}, {"n": tf.constant(2)}], 1, [tf.constant(1), tf.constant(0)]
        )
        deliver(hook, session, 1)
    assert calls == [[{"n": 1}]]


def test_no_call_without_outputs():
    with tf.Graph().as_default(), tf.Session() as session:
        deliver(OutputHook(pytest.fail, [{"n": tf.constant(1)}], 1), session, 0)

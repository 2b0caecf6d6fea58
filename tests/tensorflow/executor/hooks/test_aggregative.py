"""Hooks of the user on several towers."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tower_runs import VALUES, model_fn, run, samples

import moxing.tensorflow as mox
from moxing.tensorflow.executor.hooks.user_hooks import hooks_of_towers


class Watching(mox.AggregativeSessionRunHook):
    """Remembers what it was given, every `period` steps."""

    together = True

    def __init__(self, fetches, period=1, count_in="after"):
        self.fetches, self.period, self.count_in = fetches, period, count_in
        self.number = 0
        self.seen, self.begun, self.ended = [], 0, 0

    def support_aggregation(self):
        return self.together

    def support_sync_workers(self):
        return False

    def run_inter_mode(self):
        return False

    def begin(self):
        self.begun += 1

    def before_run(self, run_context):
        due = self.number % self.period == self.period - 1
        self.number += self.count_in == "before"
        return tf.train.SessionRunArgs(self.fetches) if due else None

    def after_run(self, run_context, run_values):
        self.number += self.count_in == "after"
        if run_values.results is not None:
            self.seen.append(run_values.results)

    def end(self, session):
        self.ended += 1


class WatchingAlone(Watching):
    together = False


def watched(kind, fetches, gpus=2, **arguments):
    """Runs with a hook on every tower; returns them."""
    hooks = []

    def with_hook(inputs, mode):
        spec = model_fn(inputs, mode)
        hooks.append(kind(fetches(spec, inputs), **arguments))
        return mox.ModelSpec(loss=spec.loss, log_info=spec.log_info, hooks=[hooks[-1]])

    run(gpus=gpus, model_fn=with_hook, input_fn=lambda mode: samples(mode, None), max_number_of_steps=6)
    assert len(hooks) == gpus
    return hooks


def means_of_batches(steps, towers):
    """For every step the mean of VALUES over the batch of each tower."""
    data = np.tile(VALUES, 4)[: steps * towers * 7].reshape(steps, towers, 7)
    return data.mean(axis=2)


@pytest.mark.parametrize("towers", [2, 3])
def test_a_hook_that_supports_aggregation_sees_means(towers):
    def fetches(spec, inputs):
        return {"y": spec.log_info["y"], "more": [inputs[1], tf.constant("text"), tf.shape(inputs[0])[0]]}

    first, *others = watched(Watching, fetches, towers)
    np.testing.assert_allclose([seen["y"] for seen in first.seen], means_of_batches(6, towers).mean(1), rtol=1e-6)
    values, text, size = first.seen[0]["more"]
    np.testing.assert_allclose(values, VALUES[: 7 * towers].reshape(towers, 7).mean(0), rtol=1e-6)
    assert values.dtype == np.float32
    assert (text, size) == (b"text", 7)
    assert (first.begun, first.ended) == (1, 1)
    assert not any(hook.seen or hook.ended for hook in others)


@pytest.mark.parametrize("count_in", ["before", "after"])
@pytest.mark.parametrize("period", [2, 3])
def test_a_hook_that_does_not_look_at_every_step(period, count_in):
    first, _ = watched(Watching, lambda spec, inputs: spec.log_info["y"], period=period, count_in=count_in)
    expected = means_of_batches(6, 2).mean(1)[period - 1 :: period]
    np.testing.assert_allclose(first.seen, expected, rtol=1e-6)


def test_a_hook_that_does_not_support_aggregation_is_there_for_every_tower():
    hooks = watched(WatchingAlone, lambda spec, inputs: spec.log_info["y"], 3)
    for index, hook in enumerate(hooks):
        np.testing.assert_allclose(hook.seen, means_of_batches(6, 3)[:, index], rtol=1e-6)
        assert (hook.begun, hook.ended) == (1, 1)


def test_a_tower_without_data_does_not_count_in_the_means():
    hooks = [Watching(None), Watching(None)]
    (together,) = hooks_of_towers([[hook] for hook in hooks], [3, 0])
    results = {"towers": [np.float32(1), np.float32(5)], "weights": [3, 0]}
    together.after_run(None, tf.train.SessionRunValues(results, None, None))
    assert hooks[0].seen == [1.0]


def test_a_plain_hook_runs_once():
    hooks = []

    class Counting(tf.train.SessionRunHook):
        def __init__(self):
            self.calls = []
            hooks.append(self)

        def begin(self):
            self.calls.append("begin")

        def after_create_session(self, session, coord):
            self.calls.append("session")

        def after_run(self, run_context, run_values):
            self.calls.append("step")

        def end(self, session):
            self.calls.append("end")

    run(gpus=3, model_fn=lambda inputs, mode: model_fn(inputs, mode, [Counting()]), max_number_of_steps=2)
    assert [hook.calls for hook in hooks] == [["begin", "session", "step", "step", "end"], [], []]


def test_one_hook_object_for_all_towers_runs_once():
    hook = WatchingAlone(None)
    run(gpus=3, model_fn=lambda inputs, mode: model_fn(inputs, mode, [hook]), max_number_of_steps=2)
    assert (hook.begun, hook.number, hook.ended) == (1, 2, 1)


def test_other_hooks_on_the_second_tower():
    towers = []

    def uneven(inputs, mode):
        towers.append(1)
        return model_fn(inputs, mode, [Watching(None)] * len(towers))

    with pytest.raises(
        ValueError, match=r"the hooks \['Watching', 'Watching'\] for tower 1, and \['Watching'\] for the first"
    ):
        run(model_fn=uneven)


def test_a_hook_that_asks_on_the_first_tower_alone():
    hooks = []

    class Moody(Watching):
        def before_run(self, run_context):
            return tf.train.SessionRunArgs(self.fetches) if self is hooks[0] else None

    def with_hook(inputs, mode):
        spec = model_fn(inputs, mode)
        hooks.append(Moody(spec.loss))
        return mox.ModelSpec(loss=spec.loss, hooks=[hooks[-1]])

    with pytest.raises(ValueError, match="The hook Moody requests values of the first tower, .* none of tower 1"):
        run(model_fn=with_hook)


@pytest.mark.parametrize("method", ["support_aggregation", "support_sync_workers", "run_inter_mode"])
def test_a_method_that_a_hook_does_not_define(method):
    class Unfinished(mox.AggregativeSessionRunHook):
        pass

    with pytest.raises(TypeError, match=rf"Unfinished must define {method}\(\), returning True or False"):
        getattr(Unfinished(), method)()

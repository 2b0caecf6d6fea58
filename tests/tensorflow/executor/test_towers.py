"""Several towers compute what NumPy computes with a batch that is so many times as large; nothing else changes."""

from __future__ import annotations

import importlib
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox
from moxing.tensorflow.executor.hooks.user_hooks import hooks_of_towers
from moxing.tensorflow.executor.loop import StepLoop

#: The package has a function of this name.
run_module = importlib.import_module("moxing.tensorflow.executor.run")

UPDATES = ("parameter_server", "replicated", "replicated_host")
RATE, MOMENTUM, DECAY = 0.1, 0.9, 0.01

random = np.random.RandomState(0)
ROWS = random.rand(50, 3).astype(np.float32)
VALUES = (ROWS @ [1, -2, 3] + 0.5 + random.rand(50) / 10).astype(np.float32)


# --- the problem, and what NumPy makes of it --------------------------------------------------------------------------


def samples(mode, epochs=2):
    return tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices((ROWS, VALUES)).repeat(epochs)).get_next()


def batches(mode):
    data = tf.data.Dataset.from_tensor_slices((ROWS, VALUES)).repeat(2).batch(7)
    return tf.data.make_one_shot_iterator(data).get_next()


def model_fn(inputs, mode, hooks=None):
    x, y = inputs
    w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer(), regularizer=lambda v: DECAY * tf.nn.l2_loss(v))
    b = tf.Variable(0.0, name="b")
    error = tf.squeeze(tf.matmul(x, w), 1) + b - y
    loss = tf.reduce_mean(tf.square(error)) + tf.add_n(tf.losses.get_regularization_losses())
    info = {"loss": loss, "size": tf.shape(x)[0], "y": tf.reduce_mean(y)}
    return mox.ModelSpec(loss=loss, log_info=info, output_info={"y": y}, hooks=hooks)


def momentum():
    return tf.train.MomentumOptimizer(RATE, MOMENTUM)


def run(mode="TRAIN", gpus=2, update=None, **arguments):
    mox.set_flag("num_gpus", gpus)
    mox.set_flag("variable_update", update)
    settings = {
        "input_fn": samples,
        "model_fn": model_fn,
        "optimizer_fn": momentum,
        "run_mode": mode,
        "batch_size": 7,
        "max_number_of_steps": 10**6,
        "log_every_n_steps": 0,
    }
    return mox.run(**{**settings, **arguments})


class Reference:
    """The same mathematics in NumPy.

    Args:
      epochs: how often the data is gone through.
    """

    def __init__(self, epochs=2):
        self.x, self.y = np.tile(ROWS.astype(np.float64), [epochs, 1]), np.tile(VALUES.astype(np.float64), epochs)
        self.place, self.w, self.b = 0, np.zeros(3), 0.0
        self.slots = [np.zeros(3), 0.0]
        self.of_first, self.of_all = [], []  # the losses that are logged

    def train(self, towers, batch=7, steps=10**6):
        while self.place < len(self.x) and steps:
            taken = slice(self.place, self.place + towers * batch)
            x, y = self.x[taken], self.y[taken]
            error = x @ self.w + self.b - y
            decay = DECAY * (self.w**2).sum() / 2
            self.of_first.append((error[:batch] ** 2).mean() + decay)
            self.of_all.append((error**2).mean() + decay)
            gradients = [2 * x.T @ error / len(x) + DECAY * self.w, 2 * error.mean()]
            self.slots = [MOMENTUM * slot + gradient for slot, gradient in zip(self.slots, gradients, strict=True)]
            self.w, self.b = self.w - RATE * self.slots[0], self.b - RATE * self.slots[1]
            self.place += towers * batch
            steps -= 1
        return self

    def check(self, directory):
        saved = checkpoint(directory)
        assert set(saved) == {"w", "b", "w/Momentum", "b/Momentum", "global_step"}
        assert saved["global_step"] == len(self.of_first)
        for name, value in {"w": self.w, "b": self.b, "w/Momentum": self.slots[0], "b/Momentum": self.slots[1]}.items():
            np.testing.assert_allclose(np.squeeze(saved[name]), value, rtol=1e-5, atol=1e-5, err_msg=name)


def checkpoint(directory):
    reader = tf.train.load_checkpoint(str(directory))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def summaries(directory, tag):
    """The values of a scalar in the order of the steps."""
    found = [
        (event.step, value.simple_value)
        for path in sorted(directory.glob("events*"))
        for event in tf.train.summary_iterator(str(path))
        for value in event.summary.value
        if value.tag == tag
    ]
    assert [step for step, _ in found] == sorted({step for step, _ in found})
    return [value for _, value in found]


@pytest.fixture
def steppers(monkeypatch):
    """The objects that did the steps of the test's runs."""
    made = []
    original = run_module.make_stepper
    monkeypatch.setattr(run_module, "make_stepper", lambda *arguments: made.append(original(*arguments)) or made[-1])
    return made


# --- training ---------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("towers", [2, 3])
@pytest.mark.parametrize("update", UPDATES)
def test_all_towers_are_logged_where_that_is_wanted(update, towers, tmp_path):
    mox.set_flag("log_first_clone", False)
    run(gpus=towers, update=update, log_dir=str(tmp_path), save_summary_steps=1)
    reference = Reference().train(towers)
    np.testing.assert_allclose(summaries(tmp_path, "loss"), reference.of_all, rtol=1e-5)


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


# --- checkpoints ------------------------------------------------------------------------------------------------------

ONE, TWO, COPIES, ON_HOST = (1, None), (2, "parameter_server"), (3, "replicated"), (2, "replicated_host")


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


# --- EVAL and PREDICT -------------------------------------------------------------------------------------------------


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


# --- the console ------------------------------------------------------------------------------------------------------


def test_throughput_counts_all_towers(tmp_path, caplog, monkeypatch):
    """A clock that goes on by a second a look makes rates comparable."""
    from moxing.tensorflow.executor.hooks import log

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
        "--num_gpus=3 and this machine has 0: the 3 towers are built on as many logical CPU devices. A step takes 3 "
        "batches as it would there."
    ]


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


# --- hooks ------------------------------------------------------------------------------------------------------------


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


def test_placeholders_are_fed_on_every_tower(tmp_path):
    """Each tower its own, as in the manual's placeholder case; and one that all share."""
    towers = []

    def fed(inputs, mode):
        index = len(towers)
        towers.append(index)
        target = tf.placeholder(tf.float32, [], name="target")
        rate = tf.get_default_graph().get_collection("rate") or [tf.placeholder(tf.float32, [], name="rate")]
        if not tf.get_collection("rate"):
            tf.add_to_collection("rate", rate[0])
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        loss = rate[0] * tf.square(w - target) / 2
        feeds = {target: 2.0 + 4 * index, rate[0]: np.float32(1.0)}
        return mox.ModelSpec(loss=loss, hooks=[mox.executor.hooks.FeedSessionRunHook(feed_dict=feeds)])

    run(
        input_fn=lambda mode: tf.constant([0.0]),
        model_fn=fed,
        optimizer_fn=lambda: tf.train.GradientDescentOptimizer(1.0),
        auto_batch=False,
        log_dir=str(tmp_path),
        max_number_of_steps=1,
    )
    assert checkpoint(tmp_path)["w"] == 4.0


def test_two_hooks_that_feed_one_tensor_differently():
    def fed(inputs, mode):
        spec = model_fn(inputs, mode)
        factor = tf.placeholder_with_default(1.0, [])
        hooks = [mox.executor.hooks.FeedSessionRunHook(feed_dict={factor: value}) for value in (1.0, 2.0)]
        return mox.ModelSpec(loss=spec.loss * factor, hooks=hooks)

    with pytest.raises(ValueError, match="Two hooks feed the same tensor .* different values"):
        run(gpus=1, model_fn=fed)


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

    with pytest.raises(ValueError, match="The hook Moody asks for values of the first tower, .* for none of tower 1"):
        run(model_fn=with_hook)


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpus", [0, -1])
def test_a_number_of_gpus_that_is_none(gpus):
    with pytest.raises(ValueError, match=f"--num_gpus={gpus}: expected 1 or more"):
        run(gpus=gpus)


def test_a_loss_that_is_not_finite_on_the_second_tower_alone_ends_the_run(tmp_path):
    def of_second(inputs, mode):
        x, y = inputs
        spec = model_fn([x, y], mode)
        bad = tf.reduce_any(tf.equal(y, VALUES[10]))  # row 10 is in the second batch
        return mox.ModelSpec(loss=tf.where(bad, spec.loss * np.nan, spec.loss))

    with pytest.raises(mox.executor.NotFiniteError, match="Step 0"):
        run(model_fn=of_second)

"""Evaluations inside training: the hooks' decisions, and whole runs."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from line_problem import line_model, number_input, sgd

import moxing.tensorflow as mox
from moxing.tensorflow.optimizer import learning_rate_scheduler


class Recorder:
    """Stands for the run: notes what a hook does to it."""

    def __init__(self):
        self.done = []

    def stop(self, why):
        self.done.append("stop")

    def scale_learning_rate(self, factor):
        self.done.append(round(factor, 9))

    def keep_best(self):
        self.done.append("keep")

    def restore_best(self):
        self.done.append("restore")


def decisions(kind, values, **arguments):
    """What the hook does after each of the values."""
    with tf.Graph().as_default():
        monitor = arguments.pop("monitor", "accuracy")
        hook = kind({monitor: tf.constant(0.0)}, monitor, batch_size=1, samples_in_train=1, **arguments)
    done = []
    for step, value in enumerate(values):
        recorder = Recorder()
        hook.evaluated(step, {monitor: value}, recorder)
        done.append(recorder.done)
        # What was remembered in between is all that there is to know.
        state = json.loads(json.dumps(hook.state()))
        with tf.Graph().as_default():
            hook = kind({monitor: tf.constant(0.0)}, monitor, batch_size=1, samples_in_train=1, **arguments)
        hook.load_state(state)
    return done


NONE, STOP = [], ["stop"]


@pytest.mark.parametrize(
    ("values", "arguments", "expected"),
    [
        # The documented run: 0.000 four times.
        ([0.0] * 4, {"min_delta": 0.01, "patience": 3}, [NONE, NONE, NONE, STOP]),
        # Exactly min_delta more is no gain; a gain begins the count anew.
        ([0.5, 0.75, 0.625, 1.0, 1.0], {"min_delta": 0.25, "patience": 3}, [NONE, NONE, NONE, NONE, NONE]),
        ([0.5, 0.75, 0.625, 0.75], {"min_delta": 0.25, "patience": 3}, [NONE, NONE, NONE, STOP]),
        # Small steps that come to a gain together.
        ([0.5, 0.6, 0.7, 0.8], {"min_delta": 0.25, "patience": 3}, [NONE, NONE, NONE, NONE]),
        ([3.0, 2.0, 1.0, 2.0], {"monitor": "loss", "patience": 1}, [NONE, NONE, NONE, STOP]),
        ([3.0, 2.0], {"monitor": "loss", "mode": "max", "patience": 1}, [NONE, STOP]),
        ([3.0, 2.0], {"mode": "min", "patience": 1}, [NONE, NONE]),
        ([1.0, float("nan"), float("nan")], {"patience": 2}, [NONE, NONE, STOP]),
        ([1.0, 1.0], {"patience": 0}, [NONE, STOP]),
    ],
)
def test_early_stopping(values, arguments, expected):
    assert decisions(mox.EarlyStoppingHook, values, **arguments) == expected


def test_early_stopping_with_the_best():
    done = decisions(mox.EarlyStoppingHook, [1.0, 2.0, 1.5, 2.0], patience=2, restore_best=True)
    assert done == [["keep"], ["keep"], NONE, ["restore", "stop"]]


@pytest.mark.parametrize(
    ("values", "arguments", "expected"),
    [
        # One decay by default: a plateau, a decay, a plateau as high as the first.
        ([0.5] * 5, {"patience": 2}, [NONE, NONE, [0.1], NONE, STOP]),
        # The decay helps (0.5 to 0.7), so that the next plateau brings the next decay; that one does not.
        ([0.5, 0.5, 0.7, 0.7, 0.7], {"patience": 1}, [NONE, [0.1], NONE, [0.01], STOP]),
        # A gain, but not more than decay_min_delta.
        ([0.5, 0.5, 0.7, 0.7], {"patience": 1, "decay_min_delta": 0.3}, [NONE, [0.1], NONE, STOP]),
        ([0.5] * 4, {"patience": 1, "decay_patience": 2, "decay_rate": 0.5}, [NONE, [0.5], [0.25], STOP]),
        ([0.5] * 2, {"patience": 1, "decay_patience": 0}, [NONE, STOP]),
        ([3.0, 2.0, 2.0], {"monitor": "loss", "patience": 1}, [NONE, NONE, [0.1]]),
    ],
)
def test_plateau(values, arguments, expected):
    assert decisions(mox.PlateauLREarlyStoppingHook, values, **arguments) == expected


def test_a_run_goes_on_where_it_was():
    with tf.Graph().as_default():
        one = {"x": tf.constant(0.0)}
        hook = mox.PlateauLREarlyStoppingHook(one, "x", 1, 1, patience=1)
        hook.load_state(
            {"value": 1.0, "waited": 0, "levels": {"value": 1.0, "waited": 0}, "factor": 0.1, "stopped": False}
        )
        hook.resume(lowered := Recorder())
        assert lowered.done == [0.1]
        early = mox.EarlyStoppingHook(one, "x", 1, 1, patience=2)
        early.load_state({"value": 1.0, "waited": 2})
        early.resume(stopped := Recorder())
        assert stopped.done == ["stop"]


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


# ---- whole runs


def evaluated(caplog, prefix):
    """Step and metrics of the lines with a prefix."""
    lines = [record.getMessage() for record in caplog.records]
    pattern = re.compile(rf"{re.escape(prefix)} step: (\d+) (.*)")
    return [(int(match[1]), match[2]) for line in lines if (match := pattern.fullmatch(line))]


def numbers(count, repeat=False):
    dataset = tf.data.Dataset.range(count).map(lambda number: tf.cast(number, tf.float32))
    return (dataset.repeat() if repeat else dataset).make_one_shot_iterator().get_next()


def two_sets(mode, **kwargs):
    """Endless numbers below 1000 for training, those below 10 for evaluation."""
    return numbers(1000, repeat=True) if mode == mox.ModeKeys.TRAIN else numbers(10)


def run(hooks, log_dir=None, steps=20, optimizer_fn=None, input_fn=two_sets, inter_mode="EVAL", **arguments):
    """Trains the line problem; `hooks` makes hooks of the batch and of w."""

    def model_fn(inputs, mode, **kwargs):
        w = tf.identity(tf.get_variable("w", shape=[], initializer=tf.zeros_initializer()))
        return mox.ModelSpec(loss=w, log_info={"w": w}, hooks=hooks(inputs[0], w))

    settings = {
        "batch_size": 4,
        "optimizer_fn": optimizer_fn or sgd(),
        "run_mode": "TRAIN",
        "max_number_of_steps": steps,
        "log_dir": None if log_dir is None else str(log_dir),
    }
    return mox.run(input_fn=input_fn, model_fn=model_fn, inter_mode=inter_mode, **{**settings, **arguments})


def log_hook(samples=None, prefix="[V]", period=10, epochs=1):
    return lambda batch, w: [
        mox.LogEvaluationMetricHook(
            {"mean": tf.reduce_mean(batch), "w": w},
            4,
            4 * period,
            samples,
            evaluate_every_n_epochs=epochs,
            prefix=prefix,
        )
    ]


def test_steps_of_the_documented_run(caplog):
    caplog.set_level("INFO")
    hooks = lambda batch, w: [mox.LogEvaluationMetricHook({"w": w}, 32, 1000, 10, 1, "[VALIDATION METRICS]")]  # noqa: E731
    run(hooks, steps=100)
    found = evaluated(caplog, "[VALIDATION METRICS]")
    assert found == [(31, "w: -32.000"), (63, "w: -64.000"), (95, "w: -96.000")]


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


def test_several_hooks(caplog):
    caplog.set_level("INFO")

    def hooks(batch, w):
        return [*log_hook(7, "[A]")(batch, w), *log_hook(None, "[B]", period=4, epochs=2)(batch, w)]

    run(hooks)
    assert [(step, text.split()[1]) for step, text in evaluated(caplog, "[A]")] == [(9, "3.000"), (19, "3.000")]
    assert [(step, text.split()[1]) for step, text in evaluated(caplog, "[B]")] == [(7, "4.500"), (15, "4.500")]


def test_several_sets(tmp_path, caplog):
    """Each hook sees its own data; what they remember does not get mixed up, also over a restart."""

    def sevens(mode):
        return numbers(7)

    def hooks(batch, w):
        mean, arguments = tf.reduce_mean(batch), (4, 40)
        return [
            mox.LogEvaluationMetricHook({"mean": mean}, *arguments, prefix="[own]", input_fn=lambda mode: numbers(3)),
            mox.LogEvaluationMetricHook({"mean": mean}, *arguments, prefix="[run]"),
            mox.LogEvaluationMetricHook({"mean": mean}, *arguments, prefix="[seven]", input_fn=sevens),
            mox.EarlyStoppingHook({"mean": mean}, "mean", *arguments, prefix="[stop]", patience=2, input_fn=sevens),
        ]

    assert run(hooks, tmp_path, steps=20).global_step == 20
    assert run(hooks, tmp_path, steps=1000).global_step == 30
    for prefix, mean in {"[own]": "1.000", "[run]": "4.500", "[seven]": "3.000", "[stop]": "3.000"}.items():
        assert evaluated(caplog, prefix) == [(step, f"mean: {mean}") for step in (9, 19, 29)]


def test_several_sets_need_the_same_hooks():
    def hooks(batch, w):
        made.append(batch)
        hook = mox.LogEvaluationMetricHook({"w": w}, 4, 40, input_fn=two_sets)
        return [hook] * len(made)

    made = []
    with pytest.raises(ValueError, match="every call must return the same"):
        run(hooks)


def test_steps_in_between_run_many_at_a_time(monkeypatch):
    calls = []
    session_run = tf.Session.run
    monkeypatch.setattr(
        tf.Session, "run", lambda self, *args, **kwargs: calls.append(1) or session_run(self, *args, **kwargs)
    )
    run(log_hook(period=1000), steps=2000, log_every_n_steps=0)
    assert len(calls) < 100


def network(inputs, mode, hooks=True):
    training = mode == mox.ModeKeys.TRAIN
    x = tf.layers.dense(inputs[0][:, None] / 1000.0, 8, name="first")
    x = tf.layers.batch_normalization(x, training=training)
    x = tf.layers.dropout(x, 0.5, training=training)
    if training:
        x += tf.layers.dense(x, 8, name="only_in_training")
    loss = tf.reduce_mean(tf.square(tf.layers.dense(x, 1) - 1.0))
    updates = len(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    hook = mox.LogEvaluationMetricHook({"loss": loss, "updates": updates}, 4, 20, prefix="[V]")
    return mox.ModelSpec(loss=loss, log_info={"loss": loss}, hooks=[hook] if hooks else [])


def test_training_does_not_notice(tmp_path, caplog):
    """Weights and moving averages are those of a run without; what is evaluated is what EVAL says of the checkpoint."""
    caplog.set_level("INFO")

    def train(log_dir, hooks):
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            return mox.run(
                input_fn=two_sets,
                model_fn=lambda inputs, mode: network(inputs, mode, hooks),
                optimizer_fn=mox.get_optimizer_fn("sgd", learning_rate=0.1),
                run_mode="TRAIN",
                inter_mode="EVAL" if hooks else None,
                batch_size=4,
                max_number_of_steps=20,
                log_dir=str(tmp_path / log_dir),
            )

    alone, evaluating = train("alone", False), train("evaluating", True)
    readers = [tf.train.load_checkpoint(result.checkpoint_path) for result in (alone, evaluating)]
    names = readers[0].get_variable_to_shape_map()
    assert names == readers[1].get_variable_to_shape_map()
    assert any("moving_mean" in name for name in names)
    for name in names:
        np.testing.assert_array_equal(readers[0].get_tensor(name), readers[1].get_tensor(name))
    lines = evaluated(caplog, "[V]")
    assert [step for step, _ in lines] == [4, 9, 14, 19]
    result = mox.run(
        input_fn=two_sets,
        # The same model_fn: its hook has nothing to do here.
        model_fn=lambda inputs, mode: network(inputs, mode),
        run_mode="EVAL",
        batch_size=4,
        max_number_of_steps=100,
        checkpoint_path=str(tmp_path / "evaluating"),
    )
    assert lines[-1][1] == f"loss: {result.log_info['loss']:.3f} updates: 0.000"


def test_averages_of_the_weights_are_evaluated(caplog):
    """w is -1, -2 after the steps, and its average, with half of it kept, -0.5 and -1.25."""
    caplog.set_level("INFO")
    averaging = mox.get_optimizer_wrapper_fn("ema", sgd(1.0), decay=0.5)
    run(log_hook(period=1), optimizer_fn=averaging, steps=2)
    assert [text.split()[-1] for _, text in evaluated(caplog, "[V]")] == ["-0.500", "-1.250"]


@pytest.mark.parametrize("update", ["parameter_server", "replicated"])
def test_two_towers(update, tmp_path, caplog):
    """The evaluation takes every sample once, and what is restored reaches both towers."""
    caplog.set_level("INFO")
    mox.set_flag("num_gpus", 2)
    mox.set_flag("variable_update", update)

    def hooks(batch, w):
        best = mox.EarlyStoppingHook({"x": tf.abs(w + 5.0)}, "x", 4, 8, patience=2, prefix="[E]", restore_best=True)
        return [best, *log_hook(7, period=2)(batch, w)]

    result = run(hooks, tmp_path, steps=100)
    assert result.global_step == 8
    assert [text.split()[1] for _, text in evaluated(caplog, "[V]")] == ["3.000"] * 4
    assert tf.train.load_checkpoint(result.checkpoint_path).get_tensor("w") == -4.0


def early(**arguments):
    return lambda batch, w: [
        mox.EarlyStoppingHook({"accuracy": tf.minimum(-w, 25.0)}, "accuracy", 32, 640, 10, 1, prefix="[E]", **arguments)
    ]


def test_early_stopping_ends_the_run(caplog):
    """-w is 20 after the first evaluation, then 25 for ever: that one is a gain, the three behind it are none."""
    caplog.set_level("INFO")
    result = run(early(min_delta=0.01, patience=3), steps=10000)
    assert result.global_step == 100
    expected = [(19, "20.000"), *((step, "25.000") for step in (39, 59, 79, 99))]
    assert [(step, text.split()[1]) for step, text in evaluated(caplog, "[E]")] == expected


def test_early_stopping_over_a_restart(tmp_path, caplog):
    caplog.set_level("INFO")
    assert run(early(patience=3), tmp_path, steps=70).global_step == 70
    # Without its memory the run would end at 140.
    assert run(early(patience=3), tmp_path, steps=10000).global_step == 100
    assert [step for step, _ in evaluated(caplog, "[E]")] == [19, 39, 59, 79, 99]
    # It has stopped; more patience lets it go on.
    assert run(early(patience=3), tmp_path, steps=10000).global_step == 100
    assert run(early(patience=5), tmp_path, steps=10000).global_step == 140


def test_the_best_is_restored(tmp_path):
    hooks = lambda batch, w: [  # noqa: E731
        mox.EarlyStoppingHook({"x": tf.abs(w + 5.0)}, "x", 4, 8, patience=2, prefix="[E]", restore_best=True)
    ]
    result = run(hooks, tmp_path, steps=100)
    # |w + 5| is 3, 1, 1 after 2, 4, 6 steps; the best is the first 1, and two evaluations later it ends.
    assert result.global_step == 8
    assert tf.train.load_checkpoint(result.checkpoint_path).get_tensor("w") == -4.0
    assert (tmp_path / "best" / "model.ckpt-4.index").exists()
    with pytest.raises(ValueError, match="EarlyStoppingHook keeps the best variables in log_dir"):
        run(hooks)


def test_the_best_at_the_end_of_the_steps(tmp_path):
    hooks = lambda batch, w: [  # noqa: E731
        mox.EarlyStoppingHook({"x": tf.abs(w + 5.0)}, "x", 4, 8, patience=50, prefix="[E]", restore_best=True)
    ]
    result = run(hooks, tmp_path, steps=20, save_model_steps=10)
    assert tf.train.load_checkpoint(result.checkpoint_path).get_tensor("w") == -4.0


def plateau(**arguments):
    return lambda batch, w: [
        mox.PlateauLREarlyStoppingHook({"x": 1.0 + 0.0 * w}, "x", 4, 8, patience=1, prefix="[P]", **arguments)
    ]


def with_schedule():
    rate = learning_rate_scheduler.piecewise_lr("1.25:1.0,100:2.0", num_samples=16, global_batch_size=4)
    return tf.train.MomentumOptimizer(rate, momentum=0.0)


OPTIMIZERS = {
    "sgd": sgd(1.0),
    "function": lambda: tf.train.GradientDescentOptimizer(lambda: 1.0),
    "momentum": mox.get_optimizer_fn("momentum", learning_rate=1.0, momentum=0.0),
    "wrapped": mox.get_optimizer_wrapper_fn("ema", sgd(1.0)),
    "twice": mox.get_optimizer_wrapper_fn("lookahead", mox.get_optimizer_wrapper_fn("ema", sgd(1.0)), k=1, alpha=1.0),
}


@pytest.mark.parametrize("name", [*OPTIMIZERS])
def test_plateau_lowers_the_rate(name, tmp_path):
    """Evaluations after 2, 4, 6 steps, all 1: after 4 the rate is a tenth, after 6 it is over."""
    result = run(plateau(), tmp_path, optimizer_fn=OPTIMIZERS[name], steps=100)
    assert result.global_step == 6
    assert tf.train.load_checkpoint(result.checkpoint_path).get_tensor("w") == pytest.approx(-4.2)


def test_plateau_and_a_schedule(tmp_path):
    result = run(plateau(), tmp_path, optimizer_fn=with_schedule, steps=100)
    # Rates 1, 1, 1, 1, and times a tenth 1 and 2.
    assert tf.train.load_checkpoint(result.checkpoint_path).get_tensor("w") == pytest.approx(-4.3)


def test_plateau_over_a_restart(tmp_path):
    assert run(plateau(), tmp_path, steps=5).global_step == 5
    result = run(plateau(), tmp_path, steps=100)
    assert result.global_step == 6
    assert tf.train.load_checkpoint(result.checkpoint_path).get_tensor("w") == pytest.approx(-4.2)
    assert run(plateau(), tmp_path, steps=100).global_step == 6


def test_optimizer_without_a_rate():
    class Own(tf.train.Optimizer):
        def __init__(self):
            super().__init__(False, "Own")

    with pytest.raises(NotImplementedError, match="Own does not keep its learning rate"):
        run(plateau(), optimizer_fn=Own)


class Inter(mox.AggregativeSessionRunHook):
    """Looks at the batches of inter_mode, one with every step."""

    def __init__(self, batch, seen):
        self._sum, self._seen = tf.reduce_sum(batch), seen

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._sum)

    def after_run(self, run_context, run_values):
        self._seen.append(float(run_values.results))
        if len(self._seen) == 5:
            run_context.request_stop()

    def support_aggregation(self):
        return False

    def support_sync_workers(self):
        return False

    def run_inter_mode(self):
        return True


def test_hook_of_the_user():
    seen = []
    assert run(lambda batch, w: [Inter(batch, seen)]).global_step == 5
    assert seen == [6.0, 22.0, 17.0, 6.0, 22.0]


def test_what_cannot_be_evaluated():
    def endless(mode, **kwargs):
        return numbers(10, repeat=True)

    def queue(mode, **kwargs):
        if mode == "TRAIN":
            return numbers(1000)
        return tf.train.input_producer(tf.range(10.0), shuffle=False).dequeue()

    with pytest.raises(ValueError, match="never ends: give samples_in_eval"):
        run(log_hook(), input_fn=endless)
    with pytest.raises(ValueError, match="in mode EVAL is made of queues"):
        run(log_hook(3), input_fn=queue)
    with pytest.raises(ValueError, match="no data at all in inter_mode"):
        run(log_hook(), input_fn=lambda mode: numbers(1000 if mode == "TRAIN" else 0))
    with pytest.raises(ValueError, match="given no inter_mode"):
        run(log_hook(), inter_mode=None)

    def grown(inputs, mode, **kwargs):
        if mode == "EVAL":
            tf.get_variable("other", shape=[2])
        return line_model(inputs, mode)

    with pytest.raises(ValueError, match="created the variable other of shape .2,. for inter_eval, and none like it"):
        mox.run(
            input_fn=number_input,
            model_fn=grown,
            optimizer_fn=sgd(),
            run_mode="TRAIN",
            inter_mode="EVAL",
            batch_size=2,
            max_number_of_steps=1,
        )


def test_what_was_probably_not_meant(caplog):
    run(log_hook(1000, period=5), steps=10)
    assert caplog.text.count("samples_in_eval is 1000, and the data of input_fn in inter_mode has 10 samples") == 1

    def other(mode, **kwargs):
        return tf.data.Dataset.from_tensor_slices(tf.zeros([3, 2])).make_one_shot_iterator().get_next()

    def model_fn(inputs, mode, **kwargs):
        w = tf.reduce_sum(tf.get_variable("w", [inputs[0].shape.rank]))
        arguments = ({"w": w}, 8, 16)
        early = mox.EarlyStoppingHook(*arguments[:1], "w", *arguments[1:])
        hooks = [early if mode == mox.ModeKeys.TRAIN else mox.LogEvaluationMetricHook(*arguments, input_fn=other)]
        return mox.ModelSpec(loss=tf.square(w), log_info={"w": w}, hooks=hooks)

    settings = {"optimizer_fn": sgd(), "run_mode": "TRAIN", "inter_mode": "EVAL", "max_number_of_steps": 2}
    with pytest.raises(
        ValueError, match=r"LogEvaluationMetricHook\(input_fn=other\): the model cannot be built on its"
    ):
        mox.run(input_fn=two_sets, model_fn=model_fn, batch_size=4, **settings)
    assert "model_fn returned EarlyStoppingHook in mode TRAIN only" in caplog.text
    assert "LogEvaluationMetricHook(batch_size=8): a training step takes 4 samples" in caplog.text


def test_inter_mode_without_hooks(caplog):
    run(lambda batch, w: [], steps=2)
    assert "no hook that uses it" in caplog.text

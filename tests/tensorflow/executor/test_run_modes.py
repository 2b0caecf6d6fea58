"""`mox.run` in its modes: callbacks, inputs, batching, log lines, outputs, losses, optimizers, hooks."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import line_problem
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from line_problem import sgd

import moxing.tensorflow as mox
from moxing.tensorflow.executor.hooks import FeedSessionRunHook

# The functions of tf.layers and the cells of tf.nn.rnn_cell say that they are deprecated.
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:.tf\.layers\.:UserWarning"),
    pytest.mark.filterwarnings(r"ignore:.tf\.nn\.rnn_cell\.:UserWarning"),
    pytest.mark.filterwarnings(r"ignore:.layer\.(add_variable|apply). is deprecated:UserWarning"),
]

tf.keras.layers  # noqa: B018  (imported now, so that every test finds the same state)

STEP_LINE = re.compile(r"step: (\d+)\(global step: (\d+)\)\tsample/sec: \d+\.\d{3}((?:\t[^\t]+: -?\d+\.\d{3})*)")


@pytest.fixture(autouse=True)
def info_lines(caplog):
    caplog.set_level("INFO", logger="tensorflow")


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "tensorflow"]


def step_lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, int, str]]:
    matches = [STEP_LINE.fullmatch(line) for line in messages(caplog) if line.startswith("step:")]
    assert all(matches), messages(caplog)
    return [(int(match[1]), int(match[2]), match[3]) for match in matches if match]


def numbers(count: int = 8, repeat: bool = False):
    def input_fn(mode, **kwargs):
        dataset = tf.data.Dataset.range(count)
        return (dataset.repeat() if repeat else dataset).make_one_shot_iterator().get_next()

    return input_fn


def scalar(name: str = "w", value: float = 0.0) -> tf.Tensor:
    """A variable that `sgd(1.0)` takes down by 1 a step where it is the loss."""
    return tf.identity(tf.get_variable(name, shape=[], initializer=tf.constant_initializer(value)))


def falling(w: tf.Tensor, inputs: Any) -> tf.Tensor:
    """The loss `w`, tied to the data and to the value of `w` as every true loss is; its gradient is 1."""
    return tf.minimum(w, 1e9 + tf.reduce_sum(tf.cast(inputs[0], tf.float32)))


def line_model(inputs, mode, **kwargs):
    w = scalar()
    return mox.ModelSpec(loss=falling(w, inputs), log_info={"w": w}, output_info={"w": w})


def run(mode: Any = "TRAIN", **arguments: Any) -> mox.RunResult:
    return line_problem.run(mode, **{"input_fn": numbers(repeat=True), "model_fn": line_model, **arguments})


def saved(directory: Any) -> dict[str, Any]:
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(directory)))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def batches_of(input_fn, steps: int = 100, **arguments: Any) -> list[dict[str, Any]]:
    """What reaches model_fn, batch by batch; model_fn is given a structure that is flattened here."""
    seen: list[dict[str, Any]] = []

    def model_fn(inputs, mode, **kwargs):
        flat = inputs.groups if isinstance(inputs, mox.InputSpec) else inputs
        leaves = tf.nest.flatten(flat)
        return mox.ModelSpec(loss=scalar(), output_info={str(index): leaf for index, leaf in enumerate(leaves)})

    run(
        input_fn=input_fn,
        model_fn=model_fn,
        output_fn=seen.extend,
        output_every_n_steps=1,
        max_number_of_steps=steps,
        **arguments,
    )
    return seen


# --- callback signatures ----------------------------------------------------------------------------------------------


class Callbacks:
    """Callbacks as methods and as an object; `record` is told the mode and returns the result."""

    def __init__(self, record):
        self._record = record

    def __call__(self, mode, **kwargs):
        return self._record(mode)

    def input_method(self, run_mode, **kwargs):
        return self._record(run_mode)

    def model_method(self, inputs, run_mode, **kwargs):
        return self._record(inputs, run_mode)


def input_forms(record) -> dict[str, Any]:
    def default(mode=None, extra=3):
        assert extra == 3
        return record(mode)

    def no_keywords(*args, **kwargs):
        assert not kwargs
        return record(*args)

    return {
        "(run_mode, **kwargs)": lambda run_mode, **kwargs: record(run_mode),
        "(mode, **kwargs)": lambda mode, **kwargs: record(mode),
        "(mode)": lambda mode: record(mode),
        "(run_mode)": lambda run_mode: record(run_mode),
        "(m)": lambda m: record(m),
        "(*args)": lambda *args: record(*args),
        "(*args, **kwargs)": no_keywords,
        "(mode=None, extra=3)": default,
        "(*, mode)": lambda *, mode: record(mode),
        "object": Callbacks(record),
        "method": Callbacks(record).input_method,
        "partial": functools.partial(lambda path, mode: record(mode), "path"),
    }


def model_forms(record) -> dict[str, Any]:
    return {
        "(inputs, run_mode, **kwargs)": lambda inputs, run_mode, **kwargs: record(inputs, run_mode),
        "(inputs, mode, **kwargs)": lambda inputs, mode, **kwargs: record(inputs, mode),
        "(inputs, mode)": lambda inputs, mode: record(inputs, mode),
        "(inputs, run_mode)": lambda inputs, run_mode: record(inputs, run_mode),
        "(x, m)": lambda x, m: record(x, m),
        "(features, mode=None)": lambda features, mode=None: record(features, mode),
        "(*args)": lambda *args: record(*args),
        "method": Callbacks(record).model_method,
        "partial": functools.partial(lambda inputs, mode, size: record(inputs, mode), size=3),
    }


@pytest.mark.parametrize("form", input_forms(None))
def test_input_fn_signatures(form):
    seen = []

    def record(mode):
        seen.append(mode)
        return numbers(repeat=True)(mode)

    run(input_fn=input_forms(record)[form], max_number_of_steps=1)
    assert seen == ["TRAIN"]
    assert seen[0] is mox.ModeKeys.TRAIN


@pytest.mark.parametrize("form", model_forms(None))
def test_model_fn_signatures(form):
    seen = []

    def record(inputs, mode):
        seen.append((len(inputs), mode))
        return line_model(inputs, mode)

    run(model_fn=model_forms(record)[form], max_number_of_steps=1)
    assert seen == [(1, mox.ModeKeys.TRAIN)]


def test_optimizer_fn_signatures():
    def with_kwargs(**kwargs):
        assert not kwargs
        return sgd()()

    forms = [sgd(), with_kwargs, mox.get_optimizer_fn("sgd", 1.0), [sgd()], (sgd(),)]
    assert [run(optimizer_fn=form).log_info["w"] for form in forms] == [-2.0] * 5


def test_optimizer_fn_comes_last_and_may_add_to_the_graph():
    order = []

    def input_fn(mode):
        order.append("input")
        return numbers(repeat=True)(mode)

    def model_fn(inputs, mode):
        order.append("model")
        return line_model(inputs, mode)

    def optimizer_fn():
        order.append("optimizer")
        step = tf.cast(tf.train.get_or_create_global_step(), tf.float32)
        tf.summary.scalar("rate", step)
        return tf.train.GradientDescentOptimizer(step)

    result = run(input_fn=input_fn, model_fn=model_fn, optimizer_fn=optimizer_fn, max_number_of_steps=4)
    assert order == ["input", "model", "optimizer"]
    assert result.log_info["w"] == -(0 + 1 + 2)


def test_output_fn_signatures(tmp_path):
    run(log_dir=tmp_path)
    seen = []

    def with_kwargs(outputs, **kwargs):
        assert not kwargs
        seen.append(outputs)

    for output_fn in (with_kwargs, seen.append, lambda outputs: seen.append(outputs)):
        run("PREDICT", log_dir=tmp_path, output_fn=output_fn, max_number_of_steps=1)
    assert seen == [[{"w": -3.0}]] * 3


@pytest.mark.parametrize("mode", ["TRAIN", mox.ModeKeys.TRAIN])
def test_run_mode_as_a_string_and_as_a_key(mode):
    assert run(mode).global_step == 3


# --- arrangements of inputs -------------------------------------------------------------------------------------------


def arrangement_of(make) -> Any:
    """The inputs that model_fn is given when input_fn returns `make(a, b)`, tensors replaced by their names."""
    seen = []

    def input_fn(mode):
        a, b = tf.data.Dataset.from_tensors((1.0, 2.0)).repeat().make_one_shot_iterator().get_next()
        return make(a, b)

    def model_fn(inputs, mode):
        w = scalar()
        seen.append(inputs)
        outputs = tf.nest.flatten(inputs.groups if isinstance(inputs, mox.InputSpec) else inputs)
        return mox.ModelSpec(loss=w, output_info={str(index): leaf for index, leaf in enumerate(outputs)})

    values = []
    run(
        input_fn=input_fn, model_fn=model_fn, output_fn=values.extend, output_every_n_steps=1, max_number_of_steps=1,
        batch_size=1,
    )  # fmt: skip
    (inputs,) = seen
    flat = [values[0][str(index)][0] for index in range(len(values[0]))]
    if isinstance(inputs, mox.InputSpec):
        return tf.nest.pack_sequence_as(inputs.groups, flat)
    return tf.nest.pack_sequence_as(inputs, flat)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda a, b: a, [1]),
        (lambda a, b: (a, b), [1, 2]),
        (lambda a, b: [b, a], [2, 1]),
        (lambda a, b: [a, a, b], [1, 1, 2]),
        (lambda a, b: {"z": a, "y": b}, {"z": 1, "y": 2}),
        (lambda a, b: {"x": (a, {"y": b}), "l": [b]}, {"x": (1, {"y": 2}), "l": [2]}),
        (lambda a, b: (a, {"k": b}), [1, {"k": 2}]),
        (lambda a, b: [[a, b], (b,)], [[1, 2], (2,)]),
        (lambda a, b: mox.InputSpec(split_to_device=True).new_input([a, b]), [[1, 2]]),
        (lambda a, b: mox.InputSpec().new_input([b]).new_input([a, b]), [[2], [1, 2]]),
    ],
)
def test_arrangements(make, expected):
    assert arrangement_of(make) == expected


def test_input_spec_in_model_fn():
    def input_fn(mode):
        spec = mox.InputSpec(split_to_device=True)
        spec.new_input([tf.constant(3.0), tf.constant(4.0)])
        return spec

    def model_fn(inputs, mode):
        first, second = inputs.get_input(0)
        assert inputs.split_to_device is True
        return mox.ModelSpec(loss=scalar(), log_info={"sum": tf.reduce_mean(first + second)})

    assert run(input_fn=input_fn, model_fn=model_fn).log_info == {"sum": 7.0}


@pytest.mark.parametrize("make", [tf.data.Dataset.range, tf.compat.v2.data.Dataset.range])
def test_data_set_returned_directly(make):
    seen = batches_of(lambda mode: make(5))
    assert [outputs["0"].tolist() for outputs in seen] == [[0, 1], [2, 3], [4]]


def test_data_set_of_dicts_returned_directly():
    def input_fn(mode):
        return tf.data.Dataset.from_tensor_slices({"x": [1, 2, 3], "label": [4, 5, 6]})

    def model_fn(inputs, mode):
        assert set(inputs) == {"x", "label"}
        return mox.ModelSpec(loss=scalar(), log_info={"x": inputs["x"][0], "label": inputs["label"][0]})

    assert run(input_fn=input_fn, model_fn=model_fn).log_info == {"x": 3.0, "label": 6.0}


def test_data_set_of_pairs_returned_directly():
    def input_fn(mode):
        return tf.data.Dataset.from_tensor_slices(([1, 2, 3], [4, 5, 6]))

    def model_fn(inputs, mode):
        x, label = inputs
        return mox.ModelSpec(loss=scalar(), log_info={"x": x[0], "label": label[0]})

    assert run(input_fn=input_fn, model_fn=model_fn).log_info == {"x": 3.0, "label": 6.0}


# --- batching ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("batch_size", "expected"), [(4, [4, 4, 2]), (5, [5, 5]), (1, [1] * 10), (16, [10])])
def test_auto_batch_keeps_the_short_tail(batch_size, expected):
    seen = batches_of(numbers(10), batch_size=batch_size)
    assert [len(outputs["0"]) for outputs in seen] == expected
    assert np.concatenate([outputs["0"] for outputs in seen]).tolist() == list(range(10))


@pytest.mark.parametrize("batch_size", [None, 3])
def test_ready_batches_are_not_batched(batch_size):
    def input_fn(mode):
        return tf.data.Dataset.range(10).batch(4).make_one_shot_iterator().get_next()

    seen = batches_of(input_fn, batch_size=batch_size, auto_batch=False)
    assert [outputs["0"].tolist() for outputs in seen] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    seen = batches_of(input_fn, batch_size=None)
    assert [len(outputs["0"]) for outputs in seen] == [4, 4, 2]


def test_static_shape_of_a_batch():
    shapes = []

    def model_fn(inputs, mode):
        shapes.append(inputs[0].shape.as_list())
        return line_model(inputs, mode)

    def input_fn(repeat):
        def build(mode):
            dataset = tf.data.Dataset.from_tensor_slices(np.zeros([6, 3, 2], np.float32))
            return (dataset.repeat() if repeat else dataset).make_one_shot_iterator().get_next()

        return build

    run(model_fn=model_fn, input_fn=input_fn(False), max_number_of_steps=1)
    run(model_fn=model_fn, input_fn=input_fn(True), max_number_of_steps=1)
    assert shapes == [[None, 3, 2], [2, 3, 2]]


def test_sample_count():
    assert run(input_fn=numbers(7), max_number_of_steps=99).samples == 7
    assert run(input_fn=numbers(7), max_number_of_steps=2).samples == 4
    ready = {"input_fn": lambda mode: tf.data.Dataset.range(7).batch(3), "max_number_of_steps": 99}
    assert run(**ready, batch_size=None).samples == 7
    assert run(**ready, batch_size=50, auto_batch=False).samples == 7
    assert run(input_fn=numbers(7), batch_size=None, max_number_of_steps=5).samples == 5


def ragged_py_func(values, shape):
    """Sample n is `[n, n, ..., n]`, n times."""

    def input_fn(mode):
        number = tf.data.Dataset.from_tensor_slices(np.array(values, np.int64)).make_one_shot_iterator().get_next()
        row = tf.py_func(lambda n: np.full([n], n, np.int64), [number], tf.int64)
        if shape is not None:
            row.set_shape(shape)
        return number, row

    return input_fn


@pytest.mark.parametrize("shape", [[None], None])
def test_samples_of_unequal_size_are_padded_with_zeros(shape):
    first, second = batches_of(ragged_py_func([2, 1, 3], shape))
    assert first["1"].tolist() == [[2, 2], [1, 0]]
    assert second["1"].tolist() == [[3, 3, 3]]
    assert first["0"].tolist() == [2, 1]


def test_padding_of_matrices_and_strings():
    def input_fn(mode):
        number = tf.data.Dataset.range(1, 4).make_one_shot_iterator().get_next()
        matrix = tf.py_func(lambda n: np.full([n, 4 - n], n, np.float32), [number], tf.float32)
        word = tf.py_func(lambda n: np.array([b"x" * n] * n, object), [number], tf.string)
        word.set_shape([None])
        return matrix, word

    (only,) = batches_of(input_fn, batch_size=3)
    expected = np.zeros([3, 3, 3], np.float32)
    for n in (1, 2, 3):
        expected[n - 1, :n, : 4 - n] = n
    np.testing.assert_array_equal(only["0"], expected)
    assert only["1"].tolist() == [[b"x", b"", b""], [b"xx", b"xx", b""], [b"xxx", b"xxx", b"xxx"]]


def test_rank_unknown_scalars_are_batched():
    def input_fn(mode):
        number = tf.data.Dataset.range(5).make_one_shot_iterator().get_next()
        return tf.py_func(lambda n: np.float32(n * n), [number], tf.float32)

    seen = batches_of(input_fn)
    assert [outputs["0"].tolist() for outputs in seen] == [[0, 1], [4, 9], [16]]


def test_rank_unknown_beside_a_table_and_a_dict():
    def input_fn(mode):
        word = tf.data.Dataset.from_tensor_slices(["a", "b", "c"]).make_one_shot_iterator().get_next()
        keys = tf.lookup.KeyValueTensorInitializer(["a", "b", "c"], tf.constant([1, 2, 3], tf.int64))
        number = tf.lookup.StaticHashTable(keys, -1).lookup(word)
        return {"n": number, "row": tf.py_func(lambda n: np.full([n], n, np.int64), [number], tf.int64)}

    first, second = batches_of(input_fn)
    assert first["0"].tolist() == [1, 2]
    assert first["1"].tolist() == [[1, 0], [2, 2]]
    assert second["1"].tolist() == [[3, 3, 3]]


# --- log lines --------------------------------------------------------------------------------------------------------


def test_train_log_lines(caplog):
    run(max_number_of_steps=25)
    assert "Running will end at step: 25" in messages(caplog)
    expected = [(step, step, f"\tw: {-step:.3f}") for step in (0, 10, 20, 24)]
    assert [(step, total, text.replace("-0.000", "0.000")) for step, total, text in step_lines(caplog)] == [
        (step, total, text.replace("-0.000", "0.000")) for step, total, text in expected
    ]


@pytest.mark.parametrize(("every", "expected"), [(1, [0, 1, 2, 3, 4]), (4, [0, 4]), (3, [0, 3, 4]), (100, [0, 4])])
def test_log_period(every, expected, caplog):
    run(max_number_of_steps=5, log_every_n_steps=every)
    assert [step for step, _, _ in step_lines(caplog)] == expected


@pytest.mark.parametrize("every", [0, None])
def test_no_log_lines(every, caplog):
    run(max_number_of_steps=5, log_every_n_steps=every)
    assert step_lines(caplog) == []


def test_log_line_of_several_values_keeps_their_order(caplog):
    def model_fn(inputs, mode):
        w = scalar()
        values = {
            "zeta": tf.constant(1.23456),
            "a b": tf.constant(7),
            "yes": tf.constant(True),
            "n": 2.5,
            "m": np.float32(3),
        }
        return mox.ModelSpec(loss=w, log_info=values)

    result = run(model_fn=model_fn, max_number_of_steps=1)
    ((_, _, text),) = step_lines(caplog)
    assert text == "\tzeta: 1.235\ta b: 7.000\tyes: 1.000\tn: 2.500\tm: 3.000"
    assert list(result.log_info) == ["zeta", "a b", "yes", "n", "m"]
    assert all(type(value) is float for value in result.log_info.values())


def test_variables_as_loss_and_log_info():
    def model_fn(inputs, mode):
        w = tf.get_variable("w", shape=[], initializer=tf.ones_initializer(), trainable=False)
        loss = tf.get_variable("loss", shape=[], initializer=tf.ones_initializer())
        return mox.ModelSpec(loss=loss, log_info={"w": w})

    assert run(model_fn=model_fn).log_info == {"w": 1.0}


@pytest.mark.parametrize("single_steps", [False, True])
def test_log_info_is_of_before_the_step_s_update(single_steps, caplog):
    """Nothing ties these reads to the update but the run itself: a line must not mix before and after."""

    def model_fn(inputs, mode):
        w = scalar()
        step = tf.identity(tf.train.get_or_create_global_step())
        hooks = [Recorder()] if single_steps else None
        return mox.ModelSpec(loss=w, log_info={"w": w, "step": step}, hooks=hooks)

    run(model_fn=model_fn, max_number_of_steps=20, log_every_n_steps=1)
    found = [text.replace("-0.000", "0.000") for _, _, text in step_lines(caplog)]
    assert found == [f"\tw: {-step if step else 0:.3f}\tstep: {step:.3f}" for step in range(20)]


def test_log_info_of_unknown_rank(caplog):
    def model_fn(inputs, mode):
        value = tf.py_func(lambda: np.float32(1.5), [], tf.float32)
        return mox.ModelSpec(loss=scalar(), log_info={"value": value})

    assert run(model_fn=model_fn).log_info == {"value": 1.5}


def test_train_without_log_info(caplog):
    assert run(model_fn=lambda inputs, mode: mox.ModelSpec(loss=scalar()), max_number_of_steps=1).log_info == {}
    assert step_lines(caplog) == [(0, 0, "")]


def sample_rates(caplog) -> list[float]:
    lines = [line for line in messages(caplog) if line.startswith("step:")]
    return [float(re.search(r"sample/sec: (\S+)", line)[1]) for line in lines]


@pytest.mark.parametrize(("batch_size", "counted"), [(7, 7), (None, 20)])
def test_sample_rate_uses_the_declared_batch_size(batch_size, counted, caplog, monkeypatch):
    """The clock is replaced: 1 s goes by with every look at it."""
    from moxing.tensorflow.executor.hooks import log

    clock = SimpleNamespace(now=0.0)

    def perf_counter():
        clock.now += 1.0
        return clock.now

    monkeypatch.setattr(log, "time", SimpleNamespace(perf_counter=perf_counter))
    run(input_fn=lambda mode: tf.data.Dataset.range(60).batch(20), batch_size=batch_size, auto_batch=False,
        log_every_n_steps=1)  # fmt: skip
    rates = sample_rates(caplog)
    assert len(rates) == 3
    for rate in rates:
        ticks = counted / rate
        assert ticks == pytest.approx(round(ticks), abs=0.01)


def test_resumed_run_goes_on_counting(tmp_path, caplog):
    run(log_dir=tmp_path, max_number_of_steps=3)
    caplog.clear()
    run(log_dir=tmp_path, max_number_of_steps=8, log_every_n_steps=2)
    assert [step for step, _, _ in step_lines(caplog)] == [4, 6, 7]
    assert all(step == total for step, total, _ in step_lines(caplog))


def test_global_steps_per_second(caplog):
    run(max_number_of_steps=250)
    assert len([line for line in messages(caplog) if re.fullmatch(r"global_step/sec: \S+", line)]) == 2


def test_saving_is_told(tmp_path, caplog):
    run(log_dir=tmp_path, max_number_of_steps=4, save_model_steps=2)
    told = [line for line in messages(caplog) if line.startswith("Saving checkpoints for")]
    assert told == [f"Saving checkpoints for {step} into {tmp_path / 'model.ckpt'}." for step in (0, 2, 4)]


# --- EVAL -------------------------------------------------------------------------------------------------------------


def mean_model(inputs, mode, **kwargs):
    w = scalar()
    numbers_ = tf.cast(inputs[0], tf.float32)
    return mox.ModelSpec(loss=w, log_info={"mean": tf.reduce_mean(numbers_), "first": numbers_[0]})


def test_eval_means_are_weighted_by_sample(tmp_path, caplog):
    run(log_dir=tmp_path, model_fn=mean_model)
    caplog.clear()
    result = run("EVAL", log_dir=tmp_path, model_fn=mean_model, input_fn=numbers(7), batch_size=3,
                 max_number_of_steps=100)  # fmt: skip
    # Batches 0 1 2, 3 4 5, 6.
    assert result.log_info == {"mean": 3.0, "first": pytest.approx((0 * 3 + 3 * 3 + 6) / 7)}
    assert result.samples == 7
    assert result.global_step == 3
    assert result.checkpoint_path == str(tmp_path / "model.ckpt-3")
    (line,) = [line for line in messages(caplog) if "[EVAL]" in line]
    assert line == "[EVAL] step: 2(global step: 3)\tsamples: 7\tmean: 3.000\tfirst: 2.143"
    assert messages(caplog)[-1] == line


def test_eval_lines_are_the_batch_s_own(tmp_path, caplog):
    run(log_dir=tmp_path, model_fn=mean_model)
    caplog.clear()
    run("EVAL", log_dir=tmp_path, model_fn=mean_model, input_fn=numbers(8), log_every_n_steps=1,
        max_number_of_steps=100)  # fmt: skip
    lines = step_lines(caplog)
    assert [(step, text) for step, _, text in lines] == [
        (step, f"\tmean: {2 * step + 0.5:.3f}\tfirst: {2 * step:.3f}") for step in range(4)
    ]
    # The checkpoint's step stays what it is, whatever the evaluation's own step.
    assert {total for _, total, _ in lines} == {3}


def test_eval_takes_so_many_steps_and_writes_nothing(tmp_path):
    run(log_dir=tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    result = run("EVAL", log_dir=tmp_path, max_number_of_steps=2)
    assert result.samples == 4
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_eval_from_checkpoint_path(tmp_path):
    run(log_dir=tmp_path / "train")
    for path in (tmp_path / "train", tmp_path / "train" / "model.ckpt-3", tmp_path / "train" / "model.ckpt-3.index"):
        result = run("EVAL", checkpoint_path=path)
        assert result.log_info == {"w": -3.0}
        assert result.checkpoint_path == str(tmp_path / "train" / "model.ckpt-3")


def test_eval_ignores_optimizer_fn(tmp_path):
    run(log_dir=tmp_path, optimizer_fn=mox.get_optimizer_fn("adam", 0.1))
    assert run("EVAL", log_dir=tmp_path, optimizer_fn=None).global_step == 3
    assert run("EVAL", log_dir=tmp_path, optimizer_fn=[sgd()] * 3).global_step == 3


# --- PREDICT ----------------------------------------------------------------------------------------------------------


def predict_model(inputs, mode, **kwargs):
    w = scalar()
    return mox.ModelSpec(loss=w, output_info={"n": inputs[0], "w": w})


@pytest.mark.parametrize(
    ("every", "expected"), [(0, [1] * 5), (None, [1] * 5), (1, [1] * 5), (2, [2, 2, 1]), (5, [5]), (100, [5])]
)
def test_predict_groups_outputs(every, expected, tmp_path, caplog):
    run(log_dir=tmp_path, model_fn=predict_model)
    calls = []
    result = run("PREDICT", log_dir=tmp_path, model_fn=predict_model, input_fn=numbers(9), output_fn=calls.append,
                 output_every_n_steps=every, max_number_of_steps=100)  # fmt: skip
    assert [len(outputs) for outputs in calls] == expected
    assert all(isinstance(outputs, list) for outputs in calls)
    flat = [outputs for call in calls for outputs in call]
    assert [outputs["n"].tolist() for outputs in flat] == [[0, 1], [2, 3], [4, 5], [6, 7], [8]]
    assert all(set(outputs) == {"n", "w"} and outputs["w"] == -3 for outputs in flat)
    assert isinstance(flat[0]["n"], np.ndarray)
    assert result.samples == 9
    assert "\t[9 examples]" in messages(caplog)


def test_predict_takes_so_many_steps(tmp_path):
    run(log_dir=tmp_path, model_fn=predict_model)
    calls = []
    run("PREDICT", log_dir=tmp_path, model_fn=predict_model, input_fn=numbers(9), output_fn=calls.append,
        output_every_n_steps=2, max_number_of_steps=3)  # fmt: skip
    assert [len(outputs) for outputs in calls] == [2, 1]


def test_predict_needs_no_loss(tmp_path):
    run(log_dir=tmp_path)
    calls = []

    def model_fn(inputs, mode):
        return mox.ModelSpec(output_info={"w": scalar()})

    run("PREDICT", log_dir=tmp_path, model_fn=model_fn, output_fn=calls.extend, max_number_of_steps=1)
    assert calls == [{"w": -3.0}]


def test_output_fn_in_train_and_eval(tmp_path):
    for mode in ("TRAIN", "EVAL"):
        calls = []
        run(mode, log_dir=tmp_path, output_fn=calls.append, output_every_n_steps=2)
        assert [len(outputs) for outputs in calls] == [2, 1]


def test_an_error_in_output_fn_reaches_the_caller(tmp_path):
    run(log_dir=tmp_path)

    def output_fn(outputs):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run("PREDICT", log_dir=tmp_path, output_fn=output_fn)


# --- losses and optimizers --------------------------------------------------------------------------------------------


def test_several_losses_against_numpy(tmp_path):
    """All gradients come from the old values; then momentum for one scope, plain descent for the other."""

    def model_fn(inputs, mode):
        x = tf.cast(inputs[0][0], tf.float32)
        with tf.variable_scope("generator"):
            g = tf.get_variable("g", initializer=0.5)
        with tf.variable_scope("discriminator"):
            d = tf.get_variable("d", initializer=-1.0)
            e = tf.get_variable("e", initializer=2.0)
        losses = [tf.square(g * d + x), tf.square(d * g - e * x)]
        return mox.ModelSpec(
            loss=losses,
            var_scopes=[["generator"], ["discriminator"]],
            log_info={"first": losses[0], "second": losses[1]},
        )

    optimizers = [lambda: tf.train.MomentumOptimizer(0.05, 0.9), sgd(0.02)]
    result = run(model_fn=model_fn, optimizer_fn=optimizers, log_dir=tmp_path, batch_size=1, max_number_of_steps=6,
                 input_fn=numbers(3, repeat=True))  # fmt: skip
    g, d, e, velocity = 0.5, -1.0, 2.0, 0.0
    for step in range(6):
        x = step % 3
        gradients = (2 * (g * d + x) * d, 2 * (d * g - e * x) * g, 2 * (d * g - e * x) * -x)
        velocity = 0.9 * velocity + gradients[0]
        g, d, e = g - 0.05 * velocity, d - 0.02 * gradients[1], e - 0.02 * gradients[2]
    weights = saved(tmp_path)
    assert result.global_step == weights["global_step"] == 6
    found = [weights["generator/g"], weights["discriminator/d"], weights["discriminator/e"]]
    np.testing.assert_allclose(found, [g, d, e], rtol=1e-5)


@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_several_losses_over_the_same_variables(optimizer, tmp_path):
    def model_fn(inputs, mode):
        w = tf.get_variable("w", initializer=3.0)
        return mox.ModelSpec(loss=[w * 2.0, w * 1.0])

    functions = [mox.get_optimizer_fn(optimizer, 0.1), mox.get_optimizer_fn(optimizer, 0.1)]
    assert run(model_fn=model_fn, optimizer_fn=functions, log_dir=tmp_path).global_step == 3
    assert saved(tmp_path)["w"] < 3.0


def test_several_losses_with_nested_scopes(tmp_path):
    def model_fn(inputs, mode):
        with tf.variable_scope("a"):
            x = tf.get_variable("x", initializer=0.0)
            with tf.variable_scope("b"):
                y = tf.get_variable("y", initializer=0.0)
        with tf.variable_scope("ab"):
            z = tf.get_variable("z", initializer=0.0)
        total = x + y + z
        return mox.ModelSpec(loss=[total, total], var_scopes=[["a/b", "ab"], ["a"]])

    run(model_fn=model_fn, optimizer_fn=[sgd(1.0), sgd(10.0)], log_dir=tmp_path, max_number_of_steps=1)
    weights = saved(tmp_path)
    assert (weights["a/x"], weights["a/b/y"], weights["ab/z"]) == (-10, -11, -1)


def test_one_loss_with_var_scopes(tmp_path):
    def model_fn(inputs, mode):
        with tf.variable_scope("a"):
            x = tf.get_variable("x", initializer=0.0)
        y = tf.get_variable("y", initializer=0.0)
        return mox.ModelSpec(loss=x + y, var_scopes=["a"])

    run(model_fn=model_fn, log_dir=tmp_path)
    assert (saved(tmp_path)["a/x"], saved(tmp_path)["y"]) == (-3, 0)


def clip_model(inputs, mode):
    a = tf.get_variable("a", initializer=[0.0, 0.0])
    b = tf.get_variable("b", initializer=0.0)
    return mox.ModelSpec(loss=tf.reduce_sum(a * [3.0, -4.0]) + 12.0 * b)


@pytest.mark.parametrize(
    ("kind", "bound", "a", "b"),
    [
        ("norm", 1.0, [0.6, -0.8], 1.0),
        ("norm", 100.0, [3.0, -4.0], 12.0),
        ("norm", 6.0, [3.0, -4.0], 6.0),
        ("global_norm", 1.3, [0.3, -0.4], 1.2),
        ("global_norm", 13.0, [3.0, -4.0], 12.0),
        ("value", 3.5, [3.0, -3.5], 3.5),
    ],
)
@pytest.mark.parametrize("scale", [1, 128])
def test_gradient_clip_against_numpy(kind, bound, a, b, scale, tmp_path):
    mox.set_flag("gradient_clip_type", kind)
    mox.set_flag("gradient_clip", bound)
    mox.set_flag("loss_scale", scale)
    run(model_fn=clip_model, log_dir=tmp_path, max_number_of_steps=2)
    weights = saved(tmp_path)
    np.testing.assert_allclose(weights["a"], -2 * np.array(a), rtol=1e-5)
    np.testing.assert_allclose(weights["b"], -2 * b, rtol=1e-5)


@pytest.mark.parametrize("kind", ["norm", "global_norm", "value"])
def test_gradient_clip_of_an_embedding(kind, tmp_path):
    """Rows 1 and 2 have the gradient 3 and 4; sparse gradients are clipped as dense ones."""

    def model_fn(inputs, mode):
        table = tf.get_variable("table", shape=[4], initializer=tf.zeros_initializer())
        return mox.ModelSpec(loss=tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 2]) * [3.0, 4.0]))

    mox.set_flag("gradient_clip_type", kind)
    mox.set_flag("gradient_clip", 2.5)
    run(model_fn=model_fn, log_dir=tmp_path, max_number_of_steps=1)
    expected = [0, -2.5, -2.5, 0] if kind == "value" else [0, -1.5, -2, 0]
    np.testing.assert_allclose(saved(tmp_path)["table"], expected, rtol=1e-6)


@pytest.mark.parametrize(("scale", "expected"), [(1, 0.0), (1024, -1.0)])
def test_loss_scale_saves_small_half_precision_gradients(scale, expected, tmp_path):
    def model_fn(inputs, mode):
        w = tf.get_variable("w", initializer=0.0)
        half = tf.cast(w, tf.float16) * tf.constant(1e-4, tf.float16) * tf.constant(1e-4, tf.float16)
        return mox.ModelSpec(loss=half)

    mox.set_flag("loss_scale", scale)
    run(model_fn=model_fn, log_dir=tmp_path, max_number_of_steps=1, optimizer_fn=sgd(1e8))
    assert saved(tmp_path)["w"] == pytest.approx(expected, rel=0.02)


def test_loss_scale_of_an_embedding_and_the_printed_loss(tmp_path):
    def model_fn(inputs, mode):
        table = tf.get_variable("table", shape=[4], initializer=tf.ones_initializer())
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 1, 3]))
        return mox.ModelSpec(loss=loss, log_info={"loss": loss})

    mox.set_flag("loss_scale", 64)
    result = run(model_fn=model_fn, log_dir=tmp_path, max_number_of_steps=1, optimizer_fn=sgd(0.5))
    assert result.log_info["loss"] == 3.0
    np.testing.assert_allclose(saved(tmp_path)["table"], [1, 0, 1, 0.5], rtol=1e-6)


@pytest.mark.parametrize(
    ("include", "exclude", "moved"),
    [
        ("conv", None, {"net/conv1/w", "net/conv2/w"}),
        (None, "conv", {"net/fc/w", "fc_head"}),
        ("conv,fc", "conv1", {"net/conv2/w", "net/fc/w", "fc_head"}),
        ("^fc", None, {"fc_head"}),
        ("conv[2-9]/w$", None, {"net/conv2/w"}),
        (None, " fc , conv2 ", {"net/conv1/w"}),
        ("", "", {"net/conv1/w", "net/conv2/w", "net/fc/w", "fc_head"}),
    ],
)
def test_trainable_patterns(include, exclude, moved, tmp_path):
    names = ["net/conv1/w", "net/conv2/w", "net/fc/w", "fc_head"]

    def model_fn(inputs, mode):
        return mox.ModelSpec(loss=tf.add_n([scalar(name) for name in names]))

    mox.set_flag("trainable_include_patterns", include)
    mox.set_flag("trainable_exclude_patterns", exclude)
    run(model_fn=model_fn, log_dir=tmp_path)
    weights = saved(tmp_path)
    assert {name for name in names if weights[name] != 0} == moved


OPTIMIZERS = {
    "adadelta": (lambda rate: tf.train.AdadeltaOptimizer(rate, rho=0.9), {"rho": 0.9}),
    "adagrad": (lambda rate: tf.train.AdagradOptimizer(rate, 0.2), {"initial_accumulator_value": 0.2}),
    "adam": (lambda rate: tf.train.AdamOptimizer(rate, beta1=0.5), {"beta1": 0.5}),
    "ftrl": (lambda rate: tf.train.FtrlOptimizer(rate, l1_regularization_strength=0.01),
             {"l1_regularization_strength": 0.01}),
    "momentum": (lambda rate: tf.train.MomentumOptimizer(rate, 0.8, use_nesterov=True),
                 {"momentum": 0.8, "use_nesterov": True}),
    "rmsprop": (lambda rate: tf.train.RMSPropOptimizer(rate, momentum=0.5), {"momentum": 0.5}),
    "sgd": (lambda rate: tf.train.GradientDescentOptimizer(rate), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_equal_tensorflow_s_own(name, tmp_path):
    make, arguments = OPTIMIZERS[name]
    target = np.array([1.0, -2.0, 0.5], np.float32)

    def loss_of(w, x):
        return tf.reduce_sum(tf.square(w - target * x))

    def model_fn(inputs, mode):
        w = tf.get_variable("w", initializer=tf.ones([3]))
        return mox.ModelSpec(loss=loss_of(w, tf.cast(inputs[0][0], tf.float32)))

    run(model_fn=model_fn, optimizer_fn=mox.get_optimizer_fn(name, 0.1, **arguments), log_dir=tmp_path, batch_size=1,
        max_number_of_steps=7)  # fmt: skip
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        w = tf.get_variable("w", initializer=tf.ones([3]), use_resource=True)
        train = make(0.1).minimize(loss_of(w, x))
        session.run(tf.global_variables_initializer())
        for step in range(7):
            session.run(train, {x: step % 8})
        expected = {variable.op.name: session.run(variable) for variable in tf.global_variables()}
    weights = saved(tmp_path)
    assert set(weights) == {*expected, "global_step"}
    for variable, value in expected.items():
        np.testing.assert_allclose(weights[variable], value, rtol=1e-6, err_msg=variable)


def test_optimizer_keys_and_their_strings():
    ours = ["adamw", "lamb", "nadam"]
    assert sorted(key.value for key in mox.OptimizerKeys) == sorted([*OPTIMIZERS, *ours])
    with tf.Graph().as_default():
        for key in mox.OptimizerKeys:
            assert type(mox.get_optimizer_fn(key, 0.1)()) is type(mox.get_optimizer_fn(key.value.upper(), 0.1)())


def test_optimizer_learning_rate_as_a_function_and_positional_arguments():
    def rate():
        return 1.0 / (1.0 + tf.cast(tf.train.get_or_create_global_step(), tf.float32))

    result = run(optimizer_fn=mox.get_optimizer_fn("sgd", rate), max_number_of_steps=4)
    assert result.log_info["w"] == pytest.approx(-(1 + 1 / 2 + 1 / 3))
    momentum = run(optimizer_fn=mox.get_optimizer_fn("momentum", 1.0, None, 0.5), max_number_of_steps=3)
    assert momentum.log_info["w"] == pytest.approx(-(1 + 1.5))


def test_optimizer_scope_names_what_belongs_to_no_weight(tmp_path):
    run(optimizer_fn=mox.get_optimizer_fn("adam", 0.1, scope="my_scope"), log_dir=tmp_path / "a")
    run(optimizer_fn=mox.get_optimizer_fn("adam", 0.1), log_dir=tmp_path / "b")
    scoped, plain = set(saved(tmp_path / "a")), set(saved(tmp_path / "b"))
    assert scoped - plain == {"my_scope/beta1_power", "my_scope/beta2_power"}
    assert plain - scoped == {"beta1_power", "beta2_power"}


def test_a_learning_rate_tensor_and_keras_losses_in_collections(tmp_path):
    def model_fn(inputs, mode):
        x = tf.cast(tf.reshape(inputs[0], [-1, 1]), tf.float32)
        layer = tf.keras.layers.Dense(1, kernel_regularizer=tf.keras.regularizers.l2(0.1))
        loss = tf.reduce_mean(tf.square(layer(x) - 2 * x)) + tf.add_n(layer.losses)
        return mox.ModelSpec(loss=loss, log_info={"loss": loss})

    first = run(model_fn=model_fn, optimizer_fn=sgd(0.01), max_number_of_steps=1).log_info["loss"]
    assert np.isfinite(first)


# --- hooks ------------------------------------------------------------------------------------------------------------


class Recorder(tf.train.SessionRunHook):
    """Counts its calls and fetches what it is told to."""

    def __init__(self, fetches=None, feed=None, stop_at=None):
        self.calls: list[str] = []
        self.values: list[Any] = []
        self._fetches, self._feed, self._stop_at = fetches, feed, stop_at

    def begin(self):
        self.calls.append("begin")

    def after_create_session(self, session, coord):
        self.calls.append("created")

    def before_run(self, run_context):
        self.calls.append("before")
        assert isinstance(run_context.session, tf.Session)
        feed = self._feed(len(self.values)) if self._feed else None
        return tf.train.SessionRunArgs(self._fetches, feed)

    def after_run(self, run_context, run_values):
        self.calls.append("after")
        self.values.append(run_values.results)
        if self._stop_at is not None and len(self.values) == self._stop_at:
            run_context.request_stop()

    def end(self, session):
        self.calls.append("end")


class Aggregative(Recorder, mox.AggregativeSessionRunHook):
    def support_aggregation(self):
        return False

    def support_sync_workers(self):
        return False

    def run_inter_mode(self):
        return False


@pytest.mark.parametrize("kind", [Recorder, Aggregative])
@pytest.mark.parametrize("mode", ["TRAIN", "EVAL", "PREDICT"])
def test_hook_calls(kind, mode, tmp_path):
    hooks = []

    def model_fn(inputs, mode):
        w = scalar()
        hooks.append(kind(fetches={"n": inputs[0]}))
        return mox.ModelSpec(loss=w, log_info={"w": w}, output_info={"w": w}, hooks=[hooks[-1]])

    run(log_dir=tmp_path)
    run(mode, model_fn=model_fn, log_dir=tmp_path if mode != "TRAIN" else None, output_fn=len)
    (hook,) = hooks
    assert hook.calls == ["begin", "created", *["before", "after"] * 3, "end"]
    assert [values["n"].tolist() for values in hook.values] == [[0, 1], [2, 3], [4, 5]]


def test_hooks_at_the_end_of_the_data():
    hook = Recorder()

    def model_fn(inputs, mode):
        return mox.ModelSpec(loss=falling(scalar(), inputs), hooks=[hook])

    result = run(model_fn=model_fn, input_fn=numbers(4), max_number_of_steps=99)
    assert result.global_step == 2
    assert hook.calls.count("after") == 2
    assert hook.calls[-1] == "end"


def test_hooks_that_look_at_no_step_do_not_force_single_steps():
    seen = []

    class Ends(tf.train.SessionRunHook):
        def begin(self):
            seen.append(tf.get_variable("added_by_hook", initializer=5.0))

        def after_create_session(self, session, coord):
            seen.append(session.run(seen[0]))

        def end(self, session):
            seen.append(int(session.run(tf.train.get_global_step())))

    run(model_fn=lambda inputs, mode: mox.ModelSpec(loss=scalar(), hooks=[Ends()]), max_number_of_steps=30)
    assert seen[1:] == [5.0, 30]


def test_feed_hook():
    """The manual's §4.5.1: a placeholder in model_fn, fed by a hook."""

    def model_fn(inputs, mode):
        w = scalar()
        x = tf.placeholder(tf.float32, [])
        y = tf.placeholder_with_default(tf.constant(0.0), [])
        hooks = [FeedSessionRunHook(feed_dict={x: 2.0}), FeedSessionRunHook({y: 1.0})]
        return mox.ModelSpec(loss=w * (x + y), log_info={"w": w, "x": x}, hooks=hooks)

    result = run(model_fn=model_fn)
    assert result.log_info == {"w": -6.0, "x": 2.0}
    assert [getattr(FeedSessionRunHook({}), name)() for name in (
        "support_aggregation", "support_sync_workers", "run_inter_mode")] == [False] * 3  # fmt: skip


def test_hook_that_feeds_another_value_every_step():
    def model_fn(inputs, mode):
        x = tf.placeholder(tf.float32, [])
        w = scalar()
        hook = Aggregative(feed=lambda step: {x: float(step)})
        return mox.ModelSpec(loss=w * x, log_info={"w": w}, hooks=[hook])

    assert run(model_fn=model_fn, max_number_of_steps=5).log_info["w"] == -(0 + 1 + 2 + 3)


def test_request_stop(tmp_path):
    hook = Recorder(stop_at=2)
    other = Recorder()

    def model_fn(inputs, mode):
        return mox.ModelSpec(loss=scalar(), hooks=[hook, other])

    result = run(model_fn=model_fn, log_dir=tmp_path, max_number_of_steps=50)
    assert result.global_step == 2
    assert saved(tmp_path)["global_step"] == 2
    assert hook.calls[-1] == other.calls[-1] == "end"
    assert len(other.values) == 2


def test_request_stop_before_the_run():
    class Stop(tf.train.SessionRunHook):
        def before_run(self, run_context):
            run_context.request_stop()

    def model_fn(inputs, mode):
        return mox.ModelSpec(loss=scalar(), hooks=[Stop()])

    assert run(model_fn=model_fn, max_number_of_steps=50).global_step == 1


def test_an_error_in_a_hook_reaches_the_caller():
    class Broken(Recorder):
        def after_run(self, run_context, run_values):
            raise KeyError("mine")

    hook = Broken()
    with pytest.raises(KeyError, match="mine"):
        run(model_fn=lambda inputs, mode: mox.ModelSpec(loss=scalar(), hooks=[hook]))
    assert "end" not in hook.calls


def test_stop_at_step_hook_of_tensorflow():
    def model_fn(inputs, mode):
        return mox.ModelSpec(loss=scalar(), hooks=[tf.train.StopAtStepHook(last_step=4)])

    assert run(model_fn=model_fn, max_number_of_steps=50).global_step == 4


def test_logging_hook_of_tensorflow(caplog):
    def model_fn(inputs, mode):
        w = scalar()
        return mox.ModelSpec(loss=w, hooks=[tf.train.LoggingTensorHook({"mine": w}, every_n_iter=2)])

    run(model_fn=model_fn, max_number_of_steps=4)
    assert len([line for line in messages(caplog) if line.startswith("mine = ")]) == 2


@pytest.mark.parametrize("with_saver", [True, False])
def test_checkpoint_saver_hook_subclass(with_saver, tmp_path):
    """Found in the wild: a subclass of TensorFlow's own saver hook, writing to a directory of its own."""

    class Saver(tf.train.CheckpointSaverHook):
        saves = 0

        def _save(self, session, step):
            type(self).saves += 1
            return super()._save(session, step)

    def model_fn(inputs, mode):
        w = scalar()
        saver = tf.train.Saver() if with_saver else None
        return mox.ModelSpec(loss=w, hooks=[Saver(str(tmp_path / "own"), save_steps=2, saver=saver)])

    assert run(model_fn=model_fn, log_dir=tmp_path / "log", max_number_of_steps=4).global_step == 4
    assert Saver.saves >= 3
    assert saved(tmp_path / "own")["w"] == saved(tmp_path / "log")["w"] == -4


# --- batch normalisation ----------------------------------------------------------------------------------------------


def keras_norm(x, training):
    return tf.keras.layers.BatchNormalization(momentum=0.5, name="norm")(x, training=training)


def layers_norm(x, training):
    return tf.layers.batch_normalization(x, momentum=0.5, training=training, name="norm")


def test_keras_first_imported_in_model_fn():
    """In a new process, where `tf.keras` is first touched while the model is built."""
    code = """
import moxing.tensorflow as mox
import tensorflow.compat.v1 as tf

def model_fn(inputs, mode):
    layer = tf.keras.layers.BatchNormalization(momentum=0.5)
    loss = tf.reduce_mean(layer(inputs[0], training=True)) + tf.get_variable('w', initializer=0.0)
    return mox.ModelSpec(loss=loss, log_info={'mean': tf.reduce_sum(layer.moving_mean.read_value())})

result = mox.run(
    input_fn=lambda mode: tf.constant([8.0]), model_fn=model_fn, run_mode='TRAIN', batch_size=2,
    optimizer_fn=lambda: tf.train.GradientDescentOptimizer(0.1), max_number_of_steps=3,
)
print('mean', result.log_info['mean'])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    # 6 before and 7 after the third update; a mean that never moved is 0.
    assert done.stdout.split()[-2:] in (["mean", "6.0"], ["mean", "7.0"])


@pytest.mark.parametrize("norm", [keras_norm, layers_norm])
def test_moving_averages_move_in_train_only(norm, tmp_path):
    data = np.array([[0.0], [2.0], [4.0], [10.0]], np.float32)  # batch means 1 and 7, variances 1 and 9

    def input_fn(mode):
        return tf.data.Dataset.from_tensor_slices(data).repeat().make_one_shot_iterator().get_next()

    def model_fn(inputs, mode):
        y = norm(inputs[0], mode == mox.ModeKeys.TRAIN)
        loss = tf.reduce_mean(y) + 0.0 * scalar()
        return mox.ModelSpec(loss=loss, log_info={"y": tf.reduce_mean(y)})

    settings = {"input_fn": input_fn, "model_fn": model_fn, "log_dir": tmp_path}
    run(**settings, optimizer_fn=sgd(0.0), max_number_of_steps=3)
    weights = saved(tmp_path)
    mean = variance = None
    for name, value in weights.items():
        if name.endswith("moving_mean"):
            mean = float(value[0])
        if name.endswith("moving_variance"):
            variance = float(value[0])
    expected_mean, expected_variance = 0.0, 1.0
    for batch_mean, batch_variance in ((1, 1), (7, 9), (1, 1)):
        expected_mean = 0.5 * expected_mean + 0.5 * batch_mean
        expected_variance = 0.5 * expected_variance + 0.5 * batch_variance
    assert mean == pytest.approx(expected_mean, rel=1e-5)
    assert variance == pytest.approx(expected_variance, rel=1e-5)

    result = run("EVAL", **settings, max_number_of_steps=2)
    y = (data.mean() - expected_mean) / np.sqrt(expected_variance + 1e-3)
    assert result.log_info["y"] == pytest.approx(y, rel=1e-4)
    again = run("EVAL", **settings, max_number_of_steps=2)
    assert again.log_info == result.log_info


def test_update_ops_of_the_user_run_with_every_step(tmp_path):
    def model_fn(inputs, mode):
        count = tf.get_variable("count", initializer=0.0, trainable=False)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(count, 1.0))
        return mox.ModelSpec(loss=scalar())

    run(model_fn=model_fn, log_dir=tmp_path, max_number_of_steps=13)
    assert saved(tmp_path)["count"] == 13


# --- several runs, seeds, numbers of steps ----------------------------------------------------------------------------


def test_several_runs_in_one_process(tmp_path):
    default = tf.Graph()
    with default.as_default():
        for target in (3, 5, 7):
            assert run(log_dir=tmp_path, max_number_of_steps=target).global_step == target
        assert run("EVAL", log_dir=tmp_path).log_info["w"] == -7
        assert run(max_number_of_steps=2).log_info["w"] == -1
        assert tf.get_default_graph() is default
    assert default.get_operations() == []


def test_the_caller_s_switches_are_put_back():
    from tensorflow.python.ops import control_flow_util

    before = (tf.executing_eagerly(), tf.resource_variables_enabled(), control_flow_util.ENABLE_CONTROL_FLOW_V2)
    run()
    with pytest.raises(TypeError):
        run(model_fn=lambda inputs, mode: None)
    assert before == (
        tf.executing_eagerly(),
        tf.resource_variables_enabled(),
        control_flow_util.ENABLE_CONTROL_FLOW_V2,
    )


def random_run(seed, directory):
    def input_fn(mode):
        return tf.data.Dataset.range(50).shuffle(50).repeat().make_one_shot_iterator().get_next()

    def model_fn(inputs, mode):
        x = tf.reshape(tf.cast(inputs[0], tf.float32), [-1, 1]) / 50
        w = tf.get_variable("w", shape=[1, 8], initializer=tf.random_normal_initializer())
        h = tf.nn.dropout(tf.matmul(x, w), rate=0.5)
        return mox.ModelSpec(loss=tf.reduce_mean(tf.square(h - 1.0)))

    with tf.Graph().as_default():
        if seed is not None:
            tf.set_random_seed(seed)
        run(input_fn=input_fn, model_fn=model_fn, log_dir=directory, optimizer_fn=sgd(0.1), max_number_of_steps=20)
    return saved(directory)["w"]


def test_seed_makes_runs_equal(tmp_path):
    first, second = random_run(11, tmp_path / "a"), random_run(11, tmp_path / "b")
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, random_run(12, tmp_path / "c"))
    assert not np.array_equal(random_run(None, tmp_path / "d"), random_run(None, tmp_path / "e"))


LAYERS = {
    "get_variable": lambda x: tf.matmul(x, tf.get_variable("kernel", [1, 3])),
    "tf.Variable": lambda x: tf.matmul(x, tf.Variable(tf.truncated_normal([1, 3]))),
    "tf.layers": lambda x: tf.layers.dense(x, 3),
    "Keras": lambda x: tf.keras.layers.Dense(3)(x),
    "Keras, initializer": lambda x: tf.keras.layers.Dense(3, kernel_initializer="he_normal")(x),
    "rnn_cell": lambda x: tf.nn.static_rnn(tf.nn.rnn_cell.BasicLSTMCell(3), [x], dtype=tf.float32)[0][0],
    "Keras LSTM": lambda x: tf.keras.layers.LSTM(3)(tf.expand_dims(x, 1)),
    "Keras dropout": lambda x: tf.keras.layers.Dropout(0.5)(
        tf.matmul(x, tf.get_variable("kernel", [1, 3])), training=True
    ),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_seed_reaches_the_variables_of_every_layer(kind, tmp_path):
    def model_fn(inputs, mode):
        x = tf.reshape(tf.cast(inputs[0], tf.float32), [-1, 1])
        return mox.ModelSpec(loss=tf.reduce_mean(tf.square(LAYERS[kind](x) - 1.0)))

    def once(directory):
        with tf.Graph().as_default():
            tf.set_random_seed(11)
            run(model_fn=model_fn, log_dir=directory, optimizer_fn=sgd(0.001))
        return saved(directory)

    first, second = once(tmp_path / "a"), once(tmp_path / "b")
    assert set(first) == set(second)
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


def test_seeds_of_operations_count_as_in_tensorflow(tmp_path):
    """Where only the operation has a seed, its numbers are the same in every run."""

    def initial():
        return tf.get_variable("w", shape=[4], initializer=tf.random_normal_initializer(seed=7))

    def model_fn(inputs, mode):
        return mox.ModelSpec(loss=tf.reduce_sum(initial()))

    with tf.Graph().as_default(), tf.Session() as session:
        w = initial()
        session.run(tf.global_variables_initializer())
        expected = session.run(w)
    run(model_fn=model_fn, log_dir=tmp_path / "a", optimizer_fn=sgd(0.0))
    run(model_fn=model_fn, log_dir=tmp_path / "b", optimizer_fn=sgd(0.0))
    np.testing.assert_array_equal(saved(tmp_path / "a")["w"], saved(tmp_path / "b")["w"])
    np.testing.assert_array_equal(saved(tmp_path / "a")["w"], expected)


@pytest.mark.parametrize(
    "steps",
    [sys.maxsize, sys.maxsize + 1, 2**31, 2**64, 10**30, float("inf"), np.int64(2**62), 1e9, np.float64(7)],
)
def test_huge_numbers_of_steps_run_to_the_end_of_the_data(steps):
    result = run(input_fn=numbers(10), max_number_of_steps=steps)
    assert result.samples == 10
    assert result.global_step == 5


def test_huge_numbers_of_steps_in_evaluation(tmp_path):
    run(log_dir=tmp_path)
    for steps in (sys.maxsize, 10**30):
        result = run("EVAL", log_dir=tmp_path, input_fn=numbers(10), max_number_of_steps=steps)
        assert (result.samples, result.global_step) == (10, 3)


@pytest.mark.parametrize("single_steps", [False, True])
def test_no_step_without_data(single_steps, tmp_path):
    """This loss does not need the input; where the data has ended there is no step all the same."""

    def model_fn(inputs, mode):
        return mox.ModelSpec(loss=scalar(), hooks=[Recorder()] if single_steps else None)

    for epoch in (1, 2, 3):
        result = run(model_fn=model_fn, log_dir=tmp_path, input_fn=numbers(10), max_number_of_steps=99)
        assert (result.global_step, saved(tmp_path)["w"]) == (5 * epoch, -5 * epoch)


@pytest.mark.parametrize("single_steps", [False, True])
def test_no_update_without_data(single_steps, tmp_path):
    """Nor does an operation of UPDATE_OPS run once more, though it does not need the input."""

    def model_fn(inputs, mode):
        count = tf.get_variable("count", initializer=0.0, trainable=False)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(count, 1.0))
        return mox.ModelSpec(loss=falling(scalar(), inputs), hooks=[Recorder()] if single_steps else None)

    run(model_fn=model_fn, log_dir=tmp_path, input_fn=numbers(10), max_number_of_steps=99)
    assert (saved(tmp_path)["w"], saved(tmp_path)["count"]) == (-5, 5)


def test_end_of_data_saves_and_the_next_run_starts_over(tmp_path):
    assert run(log_dir=tmp_path, input_fn=numbers(8), max_number_of_steps=99).global_step == 4
    assert saved(tmp_path)["w"] == -4
    result = run(log_dir=tmp_path, input_fn=numbers(8), max_number_of_steps=99)
    assert result.global_step == 8
    assert saved(tmp_path)["w"] == -8


def test_log_dir_none_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(save_model_steps=1, save_summary_steps=1)
    assert result.checkpoint_path is None
    assert list(tmp_path.iterdir()) == []


def test_result_is_immutable(tmp_path):
    result = run(log_dir=str(tmp_path))
    assert result.checkpoint_path == str(tmp_path / "model.ckpt-3")
    assert result.export_path is None
    with pytest.raises(AttributeError):
        result.global_step = 5

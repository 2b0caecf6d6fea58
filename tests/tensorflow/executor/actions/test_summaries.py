"""Event files, and the summaries of whole runs, read back."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import tensorflow.compat.v1 as tf
from events import scalars
from loop_runs import EveryStep, counting_model

import moxing.tensorflow as mox
from moxing.tensorflow.executor.actions.summaries import EventFile


def summaries(directory) -> dict[str, dict[int, Any]]:
    """By tag and step: the number of a scalar, the histogram otherwise."""
    found: dict[str, dict[int, Any]] = {}
    for path in sorted(directory.glob("events.out.tfevents.*")):
        for event in tf.train.summary_iterator(str(path)):
            for value in event.summary.value:
                kind = value.WhichOneof("value")
                content = value.simple_value if kind == "simple_value" else value.histo
                assert event.step not in found.setdefault(value.tag, {})
                found[value.tag][event.step] = content
    return found


def summary_model(single):
    def model_fn(inputs, mode):
        spec = counting_model(inputs, mode)
        numbers = tf.cast(inputs[0], tf.float32)
        tf.summary.scalar("mine", numbers[0] * 2)
        tf.summary.histogram("numbers", numbers)
        with tf.name_scope("scope"):
            tf.summary.scalar("inner", numbers[0] * 3)
        spec.log_info["first"] = numbers[0]
        spec.hooks = [EveryStep()] if single else None
        return spec

    return model_fn


def summarise(directory, single=False, **arguments):
    settings = {"max_number_of_steps": 23, "save_summary_steps": 5, "run_mode": "TRAIN", **arguments}
    settings.setdefault("model_fn", summary_model(single))
    return mox.run(
        input_fn=lambda mode: tf.data.Dataset.range(400), log_dir=directory, batch_size=4,
        optimizer_fn=lambda: tf.train.GradientDescentOptimizer(1e-6), **settings,
    )  # fmt: skip


@pytest.mark.parametrize("single", [False, True])
def test_summaries_stand_at_their_steps(single, tmp_path):
    summarise(tmp_path, single)
    found = summaries(tmp_path)
    steps = [0, 5, 10, 15, 20]
    assert {"mine", "numbers", "scope/inner", "first", "sum", "length"} <= set(found)
    assert all(list(values) == steps for values in found.values())
    assert found["first"] == {step: 4.0 * step for step in steps}
    assert found["mine"] == {step: 8.0 * step for step in steps}
    assert found["scope/inner"] == {step: 12.0 * step for step in steps}
    assert found["sum"] == {step: 16.0 * step + 6 for step in steps}
    for step, histogram in found["numbers"].items():
        assert (histogram.num, histogram.min, histogram.max) == (4, 4 * step, 4 * step + 3)


def test_summaries_go_on_after_a_resume(tmp_path):
    summarise(tmp_path, max_number_of_steps=7)
    summarise(tmp_path, max_number_of_steps=16)
    assert summaries(tmp_path)["first"] == {step: 4.0 * step for step in (0, 5, 10, 15)}


def test_summaries_of_log_info_keep_their_names(tmp_path):
    """Also where the model has an operation of the same name, as `name="loss"` makes one."""

    def model_fn(inputs, mode):
        spec = counting_model(inputs, mode)
        loss = tf.identity(spec.loss, name="loss")
        tf.summary.scalar("accuracy", tf.constant(2.0))
        return mox.ModelSpec(loss=loss, log_info={"loss": loss, "accuracy": tf.constant(3.0)})

    summarise(tmp_path, model_fn=model_fn)
    found = summaries(tmp_path)
    assert set(found) == {"loss", "accuracy", "learning_rate"}
    assert set(found["accuracy"].values()) == {2.0}


@pytest.mark.parametrize("every", [0, None])
def test_no_summaries(every, tmp_path):
    summarise(tmp_path, save_summary_steps=every)
    assert summaries(tmp_path) == {}


def test_no_summaries_by_flag(tmp_path):
    mox.set_flag("summary_verbosity", 0)
    summarise(tmp_path)
    assert summaries(tmp_path) == {}


def test_evaluation_writes_no_summaries(tmp_path):
    summarise(tmp_path, save_summary_steps=None)
    summarise(tmp_path, run_mode="EVAL")
    assert summaries(tmp_path) == {}


def test_summaries_to_the_end_of_the_data(tmp_path):
    summarise(tmp_path, max_number_of_steps=10**6, save_summary_steps=30)
    assert summaries(tmp_path)["first"] == {step: 4.0 * step for step in (0, 30, 60, 90)}


@pytest.fixture
def graph():
    """TensorFlow writes these files in graph mode, as runs do."""
    with tf.Graph().as_default() as graph:
        yield graph


def test_scalars_stand_at_their_steps(tmp_path, graph):
    events = EventFile(str(tmp_path))
    events.add_scalars({"loss": 2.0, "accuracy": 0.5}, 3)
    events.add_scalars({"loss": 1.0}, 7)
    # Every entry is flushed, so TensorBoard sees it before the file is closed.
    assert scalars(tmp_path) == {"loss": {3: 2.0, 7: 1.0}, "accuracy": {3: 0.5}}
    events.close()


def test_serialised_summaries(tmp_path, graph):
    with tf.Session() as session:
        summary = session.run(tf.summary.scalar("rate", 0.25))
    events = EventFile(str(tmp_path))
    events.add(summary, 4)
    events.close()
    assert scalars(tmp_path) == {"rate": {4: 0.25}}


def test_a_full_disk_does_not_end_the_training(tmp_path, graph, caplog, monkeypatch):
    """And a removed directory is made again."""
    events = EventFile(str(tmp_path / "log"))
    with monkeypatch.context() as full:

        def fail(*args, **kwargs):
            raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

        full.setattr(tf.summary, "FileWriter", fail)
        events.add_scalars({"a": 1.0}, 1)
        events.add_scalars({"a": 1.0}, 2)
    assert caplog.text.count("training goes on without them") == 1
    events.add_scalars({"a": 1.0}, 3)
    shutil.rmtree(tmp_path / "log")
    events.add_scalars({"a": 1.0}, 4)
    events.close()
    assert summaries(tmp_path / "log") == {"a": {4: 1.0}}


def test_no_file_without_an_entry(tmp_path, graph):
    EventFile(str(tmp_path / "log")).close()
    assert not (tmp_path / "log").exists()


def test_files_of_the_same_second_have_different_names(tmp_path, graph):
    first, second = EventFile(str(tmp_path)), EventFile(str(tmp_path))
    first.add_scalars({"a": 1.0}, 0)
    second.add_scalars({"b": 2.0}, 0)
    first.close()
    first.add_scalars({"a": 3.0}, 1)  # a closed file opens a new one
    first.close()
    second.close()
    assert len(list(tmp_path.iterdir())) == 3
    assert scalars(tmp_path) == {"a": {0: 1.0, 1: 3.0}, "b": {0: 2.0}}

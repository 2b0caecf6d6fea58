"""Small runs of `mox.run` for tests: their inputs, models, log lines and checkpoints."""

from __future__ import annotations

import re
from typing import Any

import line_problem
import pytest
import tensorflow.compat.v1 as tf

import moxing.tensorflow as mox

STEP_LINE = re.compile(r"step: (\d+)\(global step: (\d+)\)\tsample/sec: \d+\.\d{3}((?:\t[^\t]+: -?\d+\.\d{3})*)")


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
    """A variable that `sgd(1.0)` decreases by 1 per step when it is the loss."""
    return tf.identity(tf.get_variable(name, shape=[], initializer=tf.constant_initializer(value)))


def falling(w: tf.Tensor, inputs: Any) -> tf.Tensor:
    """The loss `w`, which depends on the data and on `w`, like a real loss; its gradient is 1."""
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
    """The batches that model_fn gets, each flattened to a dict."""
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


class Recorder(tf.train.SessionRunHook):
    """Counts its calls and fetches the given tensors."""

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

"""What `input_fn` returns and how it reaches `model_fn`; iterators: returned, initialised by hooks, feedable.

And the position in the data after a number of steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from bad_runs import error_of, forbidden_model, holds
from received_inputs import DATA, batches_of_inputs, input_config, numbers_of, received
from small_runs import batches_of, run, scalar

import moxing.tensorflow as mox
from moxing.tensorflow.executor.build.inputs import Share, build_inputs
from moxing.tensorflow.executor.checkpoints.position import Position
from moxing.tensorflow.executor.specs import ModeKeys


@pytest.mark.parametrize(
    "make", [lambda dataset: dataset.make_initializable_iterator(), tf.data.make_initializable_iterator]
)
def test_initializable_iterator_that_nobody_initialises(make):
    assert numbers_of(received(lambda mode: make(tf.data.Dataset.range(3)).get_next())) == [0, 1, 2]


@pytest.mark.parametrize(
    "make",
    [lambda dataset: dataset.make_one_shot_iterator(), lambda dataset: dataset.make_initializable_iterator()],
)
def test_iterator_returned(make):
    assert numbers_of(received(lambda mode: make(tf.data.Dataset.range(3)))) == [0, 1, 2]
    assert numbers_of(received(lambda mode: make(tf.data.Dataset.range(3)), batch_size=2)) == [[0, 1], [2]]


class AfterCreate(tf.train.SessionRunHook):
    """Runs something when the session is there, as users do."""

    def __init__(self):
        self.action = None

    def after_create_session(self, session, coord):
        self.action(session)


@pytest.mark.parametrize("batch_size", [None, 2])
def test_iterator_over_a_placeholder_initialised_by_a_hook(batch_size):
    hook = AfterCreate()

    def input_fn(mode):
        rows = tf.placeholder(tf.float32, [None, 4])
        iterator = tf.data.Dataset.from_tensor_slices(rows).make_initializable_iterator()
        hook.action = lambda session: session.run(iterator.initializer, {rows: DATA[:4]})
        return iterator.get_next() * 2

    seen = np.concatenate([np.atleast_2d(values) for (values,) in received(input_fn, batch_size=batch_size, hook=hook)])
    np.testing.assert_array_equal(seen, DATA[:4] * 2)


def test_a_hook_that_initialises_a_lifted_iterator_does_no_harm():
    hook = AfterCreate()

    def input_fn(mode):
        iterator = tf.data.Dataset.range(4).make_initializable_iterator()
        hook.action = lambda session: session.run(iterator.initializer)
        return iterator.get_next()

    assert numbers_of(received(input_fn, hook=hook)) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["one shot", "initializable"])
def test_feedable_iterator(kind):
    class Handle(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            if kind == "initializable":
                session.run(self.iterator.initializer)
            self.value = session.run(self.string_handle)

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(None, {self.placeholder: self.value})

    hook = Handle()

    def input_fn(mode):
        dataset = tf.data.Dataset.range(4)
        hook.placeholder = tf.placeholder(tf.string, [])
        feedable = tf.data.Iterator.from_string_handle(
            hook.placeholder, tf.data.get_output_types(dataset), tf.data.get_output_shapes(dataset)
        )
        if kind == "one shot":
            hook.iterator = dataset.make_one_shot_iterator()
        else:
            hook.iterator = dataset.make_initializable_iterator()
        hook.string_handle = hook.iterator.string_handle()
        return feedable.get_next() + 1

    assert numbers_of(received(input_fn, hook=hook)) == [1, 2, 3, 4]


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


@pytest.mark.parametrize(
    ("make", "place", "kind"),
    [
        (lambda: np.zeros([2, 3], np.float32), "[0]", "numpy array of shape (2, 3) and type float32"),
        (lambda: (tf.constant(1.0), np.float64(2)), "[1]", "numpy array of shape () and type float64"),
        (lambda: {"a": tf.constant(1.0), "b": {"c": np.arange(3)}}, "['b']['c']", "numpy array of shape (3,)"),
        (lambda: mox.InputSpec().new_input([tf.constant(1.0), np.ones(2)]), "[0][1]", "numpy array of shape (2,)"),
        (lambda: [tf.constant(1.0), "text"], "[1]", "'text'"),
        (lambda: 3.5, "[0]", "3.5"),
        (lambda: None, "[0]", "None"),
        (lambda: len, "[0]", "len"),
        (lambda: tf.ragged.constant([[1], [2, 3]]), "[0]", "RaggedTensor"),
    ],
)
def test_input_fn_returns_no_tensor(make, place, kind):
    text = error_of(TypeError, input_fn=lambda mode: make(), model_fn=forbidden_model)
    assert holds(
        text, "input_fn", f"position {place}", kind, "expected a tf.Tensor", "tf.data.Dataset.from_tensor_slices"
    )


@pytest.mark.parametrize("value", [[], (), {}, [[], {}]])
def test_input_fn_returns_nothing(value):
    text = error_of(ValueError, input_fn=lambda mode: value, model_fn=forbidden_model)
    assert holds(text, "input_fn returned", repr(value), "at least one tensor")


def test_empty_input_spec():
    assert holds(error_of(ValueError, input_fn=lambda mode: mox.InputSpec()), "input_fn", "at least one tensor")


def test_the_position_counts_elements_of_all_towers():
    with tf.Graph().as_default():
        inputs = build_inputs(input_config(), ModeKeys.TRAIN, share=Share(towers=2))
        assert inputs.elements_per_step == 4
        assert inputs.position_after(2) == Position(elements=8)
        assert inputs.starts_over
        assert batches_of_inputs(inputs) == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [0, 1]]]


def test_a_resumed_run_starts_at_its_position():
    with tf.Graph().as_default():
        inputs = build_inputs(input_config(), ModeKeys.TRAIN, Position(elements=6))
        assert not inputs.starts_over
        assert inputs.position_after(1) == Position(elements=8)
        assert batches_of_inputs(inputs) == [[[6, 7]], [[8, 9]]]

"""Sample sources: they begin anywhere, leave out what is bad and say so, and never wait for ever."""

from __future__ import annotations

import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from image_folders import elements, session

from moxing.framework.flags import FLAGS
from moxing.tensorflow.datasets.bad_samples import BadSample, BadSampleLog, TooManyBadSamplesError
from moxing.tensorflow.datasets.sample_order import SampleOrder
from moxing.tensorflow.datasets.sample_source import (
    NUMBER,
    POSITION,
    SEED,
    Samples,
    SampleSource,
    keep_errors,
    source_of,
)


class Numbers(Samples):
    """The numbers from 0; those in `bad` fail in the first stage, a chunk with one in `raising` fails in `fetch`."""

    def __init__(self, bad=(), raising=()):
        self.bad, self.raising = np.array(sorted(bad), np.int64), set(raising)
        self.columns = {"value": tf.TensorSpec([], tf.int64), "name": tf.TensorSpec([], tf.string)}
        self.fetched: list[int] = []

    def fetch(self, numbers):
        self.fetched += numbers.tolist()
        if self.raising.intersection(numbers.tolist()):
            raise OSError("the disk is on fire")
        return [numbers * 10, np.array([*(b"%d" % number for number in numbers), None], object)[:-1]]

    def explain(self, number):
        return BadSample(f"{number}", None, "bad on purpose")

    def check(self, features):
        fine = tf.reduce_all(tf.not_equal(features[NUMBER], tf.constant(self.bad, tf.int64)))
        with tf.control_dependencies([tf.debugging.Assert(fine, ["bad"])]):
            return {name: tf.identity(value) for name, value in features.items()}


def make(count, epochs=1, bad=(), raising=(), seed=(1, 1), parallel=3, **options):
    samples = Numbers(bad, raising)
    order = SampleOrder(count, epochs, seed)
    source = SampleSource(samples, order, (5, 1), BadSampleLog(None), [(samples.check, parallel)], **options)
    if "finish" in options:
        source.samples_per_element = 4
    return source


def values(source, start=0, most=10**6, name="value"):
    with session() as opened:
        element = tf.data.make_one_shot_iterator(source.build(start)).get_next()
        return elements(opened, element[name], most)


def expected(source, start=0):
    numbers = source.order.numbers(np.arange(start, source.order.total))
    return [int(number) * 10 for number in numbers if number not in source.samples.bad]


@pytest.fixture(autouse=True)
def many_may_be_bad():
    FLAGS.set("max_bad_samples", "1000000")


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(st.integers(1, 150), st.integers(1, 3), st.data())
def test_begins_anywhere(count, epochs, data):
    start = data.draw(st.integers(0, count * epochs))
    bad = data.draw(st.sets(st.integers(0, count - 1), max_size=count // 3))
    source = make(count, epochs, bad)
    assert values(source, start) == expected(source, start)


@pytest.mark.parametrize("start", [1, 64, 101, 229, 300])
def test_building_from_a_place_is_the_same_as_skipping_to_it(start):
    source = make(100, 3)
    with session() as opened:
        skipped = tf.data.make_one_shot_iterator(source.build(0).skip(start)).get_next()
        built = tf.data.make_one_shot_iterator(source.build(start)).get_next()
        names = ["value", "name", POSITION, NUMBER, SEED]
        pairs = [elements(opened, [element[name] for name in names]) for element in (skipped, built)]
    assert len(pairs[0]) == len(pairs[1]) == 300 - start
    for one, other in zip(*pairs, strict=True):
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(
    "bad",
    [
        [0],
        [99],
        [50],
        [0, 1, 2],
        [97, 98, 99],
        [40, 41, 42, 60],
        range(64),
        range(36, 100),
        range(99),
        range(0, 100, 2),
    ],
    ids=str,
)
def test_bad_samples_are_left_out_and_named(bad):
    source = make(100, 2, bad, seed=None)
    assert values(source) == expected(source)
    assert [sample.file for sample in source.bad_samples.samples] == [str(number) for number in bad]


@pytest.mark.slow
@pytest.mark.parametrize("bad", [[], [0, 1, 99], range(0, 100, 3)], ids=str)
def test_going_on_after_n_elements(bad):
    everything = expected(make(100, 2, bad))
    for delivered in (1, 33, len(everything)):
        source = make(100, 2, bad)
        assert values(source, most=delivered) == everything[:delivered]
        assert values(make(100, 2, bad), source.position_after(0, delivered)) == everything[delivered:]
    assert source.position_after(0, len(everything)) == 200


def test_going_on_twice():
    bad = [9, 30, 31, 32]
    everything = expected(make(100, 2, bad))
    place = 0
    for delivered in range(0, 170, 50):
        source = make(100, 2, bad)
        assert values(source, place, most=50) == everything[delivered : delivered + 50]
        place = source.position_after(place, 50)


@pytest.mark.slow
def test_going_on_after_n_batches():
    bad = [3, 4, 50]
    everything = expected(make(100, 2, bad))
    for delivered in (1, 10, 48):
        source = make(100, 2, bad, finish=lambda dataset: dataset.batch(4))
        batches = values(source, most=delivered)
        assert [value for batch in batches for value in batch] == everything[: 4 * delivered]
        assert values(make(100, 2, bad), source.position_after(0, delivered)) == everything[4 * delivered :]
    assert source.position_after(0, 10**6) == 200


def test_endless_data_goes_on_and_a_gap_counts_in_every_epoch():
    source = make(10, None, bad=[2, 7], seed=None)
    assert source.endless and not make(10).endless
    one_epoch = [0, 10, 30, 40, 50, 60, 80, 90]
    assert values(source, most=40) == one_epoch * 5
    assert source.position_after(0, 40) == 50
    assert values(make(10, None, bad=[2, 7], seed=None), 50 + 10 * 10**12, most=3) == [0, 10, 30]
    assert len(source.bad_samples.samples) == 2


@pytest.mark.timeout(120)
@pytest.mark.parametrize("epochs", [None, 10**9])
@pytest.mark.parametrize("first_bad", [0, 3])
def test_bad_samples_only_are_an_error_not_a_wait_for_ever(epochs, first_bad):
    FLAGS.set("max_bad_samples", "5")
    source = make(1000, epochs, bad=range(first_bad, 1000), seed=None)
    with pytest.raises(tf.errors.UnknownError, match="bad on purpose"):
        values(source)
    assert isinstance(source.bad_samples.failure, TooManyBadSamplesError)
    assert len(source.bad_samples.samples) == 6


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("count", "epochs"), [(1, None), (3, None), (3, 1), (100, 10**9)])
def test_bad_samples_only_are_an_error_even_if_all_may_be_bad(count, epochs):
    source = make(count, epochs, bad=range(count), seed=None)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"(?s)None of the {count} samples.*0: bad on purpose"):
        values(source, most=1)
    assert isinstance(source.bad_samples.failure, ValueError)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("count", "epochs"), [(10, None), (1000, None), (10, 1), (1000, 2)])
@pytest.mark.parametrize("raising", [0, -1])
def test_a_fetch_that_raises_ends_with_its_error(count, epochs, raising):
    source = make(count, epochs, raising=[raising % count], seed=None)
    with pytest.raises(tf.errors.UnknownError, match="the disk is on fire"):
        values(source)
    assert str(source.bad_samples.failure) == "the disk is on fire"
    assert source.bad_samples.samples == ()


def test_a_log_that_cannot_be_written_ends_the_data(tmp_path):
    (tmp_path / "file").touch()
    source = make(10, None, bad=[3], seed=None)
    source.bad_samples = BadSampleLog(str(tmp_path / "file"))
    with pytest.raises(tf.errors.UnknownError):
        values(source, most=100)
    assert isinstance(source.bad_samples.failure, OSError)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_two_iterators_over_one_data_set_do_not_confuse_it():
    source = make(100, None, bad=[5], seed=None, capacity=8)
    with session() as opened:
        dataset = source.build()
        first, second = (tf.data.make_initializable_iterator(dataset) for _ in range(2))
        fetches = [iterator.get_next()["value"] for iterator in (first, second)]
        opened.run(first.initializer)
        elements(opened, fetches[0], 990)
        opened.run(second.initializer)
        begun = elements(opened, fetches[1], 5)
        went_on = elements(opened, fetches[0], 990)
        opened.run(second.initializer)
        begun_again = elements(opened, fetches[1], 990)
    assert begun == [0, 10, 20, 30, 40]
    assert went_on == begun_again
    assert [sample.file for sample in source.bad_samples.samples] == ["5"]


def test_the_order_is_kept_under_options_of_the_user():
    source = make(200, 1, parallel=8)

    def sometimes_slow(value):
        time.sleep(0.02 if value % 70 == 0 else 0)
        return value

    def stage(features):
        slowed = tf.numpy_function(sometimes_slow, [features["value"]], tf.int64)
        return {"value": tf.ensure_shape(slowed, [])}

    source.stages.append((stage, 8))
    with session() as opened:
        options = tf.data.Options()
        options.deterministic = False
        dataset = source.build().with_options(options)
        got = elements(opened, tf.data.make_one_shot_iterator(dataset).get_next()["value"])
    assert got == expected(source)
    assert source.bad_samples.samples == ()


@pytest.mark.parametrize("bad", [[], [0, 39]])
def test_sparse_ragged_sized_and_odd_features(bad):
    source = make(40, 1, bad, seed=None)

    def stage(features):
        value = features["value"]
        return {
            "sparse": tf.SparseTensor([[value % 3]], [value], [3]),
            "unknown": tf.fill([value % 4, 2], value),
            "text": tf.strings.as_string(value),
            "flag": value > 100,
        }

    source.stages.append((stage, 2))
    with session() as opened:
        element = tf.data.make_one_shot_iterator(source.build()).get_next()
        assert element["unknown"].shape.as_list() == [None, 2]
        assert element["sparse"].dense_shape.shape.as_list() == [1]
        names = ["sparse", "unknown", "text", "flag"]
        got = elements(opened, [element[name] for name in names])
    numbers = [number for number in range(40) if number not in bad]
    assert len(got) == len(numbers)
    for number, (sparse, unknown, text, flag) in zip(numbers, got, strict=True):
        value = number * 10
        assert (sparse.indices.tolist(), sparse.values.tolist()) == ([[value % 3]], [value])
        assert unknown.shape == (value % 4, 2)
        assert (text, bool(flag)) == (b"%d" % value, value > 100)


def test_nothing_is_fetched_before_the_start_and_not_much_beyond_what_is_taken():
    source = make(100_000, 1, seed=None, capacity=64)
    values(source, start=50_000, most=10)
    assert min(source.samples.fetched) == 50_000
    assert len(source.samples.fetched) < 1000


def test_the_source_of_a_data_set():
    source = make(5)
    with tf.Graph().as_default() as graph:
        dataset = source.build()
        assert source_of(dataset) is source
        assert source_of(tf.data.Dataset.range(3)) is None
        # Collections named by strings would go into the meta graph, which knows no such values.
        assert not [key for key in graph.collections if isinstance(key, str) and "source" in key]


def test_the_seed_of_a_sample_is_its_position_and_that_of_the_data_set():
    one, other = (dict(zip(values(make(20), name="value"), seeds, strict=True)) for seeds in _seeds_twice())
    assert one == other
    assert len(set(one.values())) == 20


def _seeds_twice():
    for parallel in (1, 8):
        yield [tuple(seed.tolist()) for seed in values(make(20, parallel=parallel), name=SEED)]


def test_bad_samples_that_meet_at_the_end_of_an_epoch_are_no_failure():
    """Two samples, one bad: good, bad | bad, good has as many bad ones in a row as there are samples."""
    source = make(2, 50, bad=[1], seed=(1, 1))
    assert len(values(source)) == 50


def test_keep_errors_keeps_the_first_error():
    log = BadSampleLog(None)

    def fail(text):
        raise OSError(text)

    for text in ("first", "second"):
        with pytest.raises(OSError, match=text):
            keep_errors(log, fail)(text)
    assert str(log.failure) == "first"

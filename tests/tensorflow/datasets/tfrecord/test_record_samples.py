"""Records by number: what a dataset is given, in which order, and why a record is left out."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from record_writing import encode, example, flip_byte, noise, write

from moxing.tensorflow.datasets.bad_samples import BadSampleLog, TooManyBadSamplesError
from moxing.tensorflow.datasets.tfrecord.record_index import RecordIndex
from moxing.tensorflow.datasets.tfrecord.record_samples import (
    RecordSamples,
    explain_example,
    explain_image,
    log_damaged_parts,
    readable_record,
    record_order,
)


def index_of(*paths):
    return RecordIndex.build([str(path) for path in paths])


class TestFetching:
    def test_records_in_the_order_asked_for_with_every_byte(self, tmp_path):
        records = [b"", b"\0", b"zeros at the end\0\0\0", b"\0\0middle\0", bytes(range(256))]
        write(tmp_path / "a", records)
        numbers = np.array([3, 0, 4, 2, 1, 2])
        data, readable = RecordSamples(index_of(tmp_path / "a")).fetch(numbers)
        assert data.dtype == object and data.tolist() == [records[number] for number in numbers]
        assert readable.dtype == bool and readable.all()

    def test_a_damaged_record_is_marked_and_does_not_raise(self, tmp_path):
        offsets = write(tmp_path / "a", [b"first", b"second", b"third"])
        flip_byte(tmp_path / "a", offsets[1] + 12 + 3)
        data, readable = RecordSamples(index_of(tmp_path / "a")).fetch(np.arange(3))
        assert data.tolist() == [b"first", b"", b"third"] and readable.tolist() == [True, False, True]

    def test_columns_say_what_is_fetched(self, tmp_path):
        write(tmp_path / "a", [b"first"])
        samples = RecordSamples(index_of(tmp_path / "a"))
        fetched = samples.fetch(np.arange(1))
        assert len(fetched) == len(samples.columns)
        assert [spec.dtype for spec in samples.columns.values()] == [tf.string, tf.bool]

    def test_only_readable_records_are_used(self):
        with tf.Graph().as_default(), tf.Session() as session:
            for readable in (True, False):
                record = readable_record({"record": tf.constant(b"data"), "readable": tf.constant(readable)})
                if readable:
                    assert session.run(record) == b"data"
                else:
                    with pytest.raises(tf.errors.InvalidArgumentError, match="could not be read"):
                        session.run(record)


class TestExplaining:
    def test_a_flipped_byte(self, tmp_path):
        offsets = write(tmp_path / "a", [b"first", b"second", b"third"])
        flip_byte(tmp_path / "a", offsets[1] + 12 + 3)
        bad = RecordSamples(index_of(tmp_path / "a")).explain(1)
        assert (bad.file, bad.offset) == (str(tmp_path / "a"), offsets[1])
        assert "checksum" in bad.reason

    def test_a_file_that_changed(self, tmp_path):
        offsets = write(tmp_path / "a", [b"first", b"second", b"third"])
        samples = RecordSamples(index_of(tmp_path / "a"))
        (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:-3])
        bad = samples.explain(2)
        assert bad.offset == offsets[2] and "changed after it was indexed" in bad.reason

    def test_the_content_is_asked_about(self, tmp_path):
        write(tmp_path / "a", [b"first", b"second"])
        samples = RecordSamples(index_of(tmp_path / "a"), lambda record: f"has {len(record)} bytes")
        assert samples.explain(1).reason == "has 6 bytes"

    @pytest.mark.parametrize("explain", [None, lambda record: None])
    def test_nothing_is_known(self, tmp_path, explain):
        write(tmp_path / "a", [b"first"])
        assert "features could not be built" in RecordSamples(index_of(tmp_path / "a"), explain).explain(0).reason


NUMBER = tf.FixedLenFeature([], tf.int64)
TEXT = tf.FixedLenFeature([], tf.string)


class TestExamples:
    def test_a_good_one(self):
        record = example({"a": 1, "b": b"text", "c": [1.0, 2.0]})
        keys = {"a": NUMBER, "b": TEXT, "c": tf.FixedLenFeature([2], tf.float32), "d": tf.VarLenFeature(tf.int64)}
        assert explain_example(record, keys) is None

    def test_a_missing_key_and_those_that_are_there(self):
        reason = explain_example(example({"image": b"", "class": 1}), {"image": TEXT, "label": NUMBER})
        assert reason == "has no 'label'; it has class, image"

    def test_a_key_without_values_is_missing(self):
        features = tf.train.Features(feature={"label": tf.train.Feature()})
        record = tf.train.Example(features=features).SerializeToString()
        assert "has no 'label'" in explain_example(record, {"label": NUMBER})

    @pytest.mark.parametrize(
        "optional",
        [
            tf.FixedLenFeature([], tf.int64, default_value=0),
            tf.VarLenFeature(tf.int64),
            tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
        ],
    )
    def test_what_may_be_missing_is_not_named(self, optional):
        keys = {"optional": optional, "label": NUMBER}
        assert "has no 'label'" in explain_example(example({"x": 1}), keys)
        assert explain_example(example({"label": 1}), keys) is None

    @pytest.mark.parametrize("wanted", [NUMBER, tf.VarLenFeature(tf.int64)])
    def test_another_type(self, wanted):
        reason = explain_example(example({"label": b"7"}), {"label": wanted})
        assert reason == "'label' is a bytes_list, but a feature of int64 needs int64_list"

    @pytest.mark.parametrize(("shape", "count"), [([], 1), ([4], 4), ((2, 3), 6)])
    def test_another_number_of_values(self, shape, count):
        reason = explain_example(example({"x": [1.0, 2.0, 3.0]}), {"x": tf.FixedLenFeature(shape, tf.float32)})
        assert reason is not None and "'x' has 3 values" in reason and reason.endswith(f"needs {count}")

    def test_something_else(self):
        assert explain_example(b"<html>not found</html>", {"label": NUMBER}) == "not a tf.train.Example"

    def test_what_tensorflow_takes_is_never_blamed(self):
        """The explanation agrees with the parser on what can be parsed."""
        records = [{"x": [1, 2]}, {"x": [1.0, 2.0]}, {"x": [b"a", b"b"]}, {"x": []}, {"x": 1}, {}, {"y": 1}]
        wanted = [
            tf.FixedLenFeature([2], tf.int64),
            tf.FixedLenFeature([2], tf.float32, default_value=[0.0, 0.0]),
            tf.FixedLenFeature([], tf.int64),
            tf.VarLenFeature(tf.string),
            tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
        ]
        with tf.Graph().as_default(), tf.Session() as session:
            record = tf.placeholder(tf.string, [])
            for value in wanted:
                parsed = tf.parse_single_example(record, {"x": value})["x"]
                for features in records:
                    serialised = example(features)
                    try:
                        session.run(parsed, {record: serialised})
                        parses = True
                    except tf.errors.OpError:
                        parses = False
                    assert (explain_example(serialised, {"x": value}) is None) == parses, (value, features)


class TestImages:
    def explain(self, encoded):
        return explain_image(example({"image/encoded": encoded}), "image/encoded")

    def test_a_broken_image(self):
        reason = self.explain(encode(noise(20, 30), "png")[:400])
        assert "'image/encoded': PNG" in reason and "truncated" in reason

    def test_no_image_at_all(self):
        assert "not an image" in self.explain(b"<html>")
        assert "empty" in self.explain(b"")
        assert explain_image(example({"other": 1}), "image/encoded") == "has no 'image/encoded'; it has other"

    def test_a_good_image_says_its_size(self):
        """The usual cause then is a shape that does not fit."""
        reason = self.explain(encode(noise(20, 30), "jpeg"))
        assert "could not be built" in reason and "JPEG, 30x20" in reason


class TestOrder:
    def order(self, tmp_path, counts, buffer, seed=(3, 1), epochs=2):
        paths = [tmp_path / str(part) for part in range(len(counts))]
        for path, count in zip(paths, counts, strict=True):
            write(path, [b"x"] * count)
        order = record_order(index_of(*paths), epochs, seed, buffer)
        return order.numbers(np.arange(2 * sum(counts))).reshape(2, -1)

    @pytest.mark.parametrize("buffer", [1, 50, 100, 10_000])
    def test_every_epoch_has_every_record_once_in_an_order_of_its_own(self, tmp_path, buffer):
        epochs = self.order(tmp_path, [300, 1, 130, 64], buffer)
        assert (np.sort(epochs, axis=1) == np.arange(495)).all()
        assert (epochs[0] != epochs[1]).mean() > 0.5
        assert (np.diff(epochs[0]) != 1).any()

    def test_without_a_seed_the_order_of_the_files(self, tmp_path):
        epochs = self.order(tmp_path, [100, 30], 10, seed=None)
        assert (epochs == np.arange(130)).all()

    def test_a_small_buffer_keeps_neighbours_together(self, tmp_path):
        """What a disk likes: with a buffer of one run, a stretch of the order is about one stretch of a file."""
        spread = [
            np.mean([np.ptp(part) for part in np.array_split(self.order(tmp_path, [6400], buffer)[0], 100)])
            for buffer in (64, 6400)
        ]
        assert spread[0] < 100 < 5000 < spread[1]

    def test_seeds_decide(self, tmp_path):
        first, second, other = (self.order(tmp_path, [200], 50, seed) for seed in [(3, 1), (3, 1), (3, 2)])
        assert (first == second).all() and (first != other).any()


class TestDamages:
    def test_each_is_told_with_its_place_and_size(self, tmp_path):
        offsets = write(tmp_path / "a", [b"x" * 100] * 5)
        flip_byte(tmp_path / "a", offsets[3] + 9)
        index, bad_samples = index_of(tmp_path / "a"), BadSampleLog(None)
        log_damaged_parts(index, bad_samples)
        (bad,) = bad_samples.samples
        assert (bad.file, bad.offset) == (str(tmp_path / "a"), offsets[3])
        assert "length" in bad.reason and "116 bytes" in bad.reason

    def test_too_many_stop_at_once(self, tmp_path):
        offsets = write(tmp_path / "a", [b"x" * 100] * 7)
        for place in (1, 3):
            flip_byte(tmp_path / "a", offsets[place] + 9)
        with pytest.raises(TooManyBadSamplesError, match=f"at byte {offsets[3]}"):
            log_damaged_parts(index_of(tmp_path / "a"), BadSampleLog(None))

"""`get_tfrecord` as the manual shows it, classes of the user's own, damaged files, and going on after a stop."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from record_writing import (
    column,
    encode,
    example,
    flip_byte,
    journal,
    noise,
    rows,
    run_seeing,
    slim_example,
    until_end,
    warnings_logged,
    write,
    write_numbers,
)

import moxing.tensorflow as mox
from moxing.tensorflow.datasets.journal import TooManyBadSamplesError
from moxing.tensorflow.datasets.tfrecord_common import BaseTFRecordDataset, BaseTFRecordMetadata
from moxing.tf1.contrib import slim

NUMBER = tf.FixedLenFeature([], tf.int64)


def numbers(directory, pattern="*.tfrecord", **arguments):
    """The manual's function on records with the key `id`."""
    handlers = {"id": slim.tfexample_decoder.Tensor("id")}
    return mox.get_tfrecord(str(directory), pattern, {"id": NUMBER}, handlers, **arguments)


def strings(directory, **arguments):
    """The first example of the manual."""
    keys_to_features = {
        "image": tf.FixedLenFeature(shape=(), dtype=tf.string, default_value=None),
        "label": tf.FixedLenFeature(shape=(), dtype=tf.string, default_value=None),
    }
    items_to_handlers = {
        "image": slim.tfexample_decoder.Tensor("image"),
        "label": slim.tfexample_decoder.Tensor("label"),
    }
    return mox.get_tfrecord(
        dataset_dir=str(directory),
        file_pattern="*.tfrecord",
        keys_to_features=keys_to_features,
        items_to_handlers=items_to_handlers,
        **arguments,
    )


def digits(directory, **arguments):
    """The second example of the manual; its default for the label is a tensor."""
    keys_to_features = {
        "image/encoded": tf.FixedLenFeature((), tf.string, default_value=""),
        "image/format": tf.FixedLenFeature((), tf.string, default_value=""),
        "image/class/label": tf.FixedLenFeature([1], tf.int64, default_value=tf.zeros([1], dtype=tf.int64)),
    }
    items_to_handlers = {
        "image": slim.tfexample_decoder.Image(shape=[28, 28, 1], channels=1),
        "label": slim.tfexample_decoder.Tensor("image/class/label", shape=[]),
    }
    return mox.get_tfrecord(
        dataset_dir=str(directory),
        file_pattern="*.tfrecord",
        keys_to_features=keys_to_features,
        items_to_handlers=items_to_handlers,
        **arguments,
    )


STRINGS = [(b"image \xff\0 %d \0" % i, b"label %d" % (i % 3)) for i in range(10)]
IMAGES = [noise(28, 28, 1, seed) for seed in range(6)]


def write_strings(directory):
    records = [example({"image": image, "label": label}) for image, label in STRINGS]
    write(directory / "a.tfrecord", records[:7])
    write(directory / "b.tfrecord", records[7:])
    return directory


def write_digits(directory):
    records = [slim_example(image, label) for label, image in enumerate(IMAGES)]
    # As in a data set without labels: the default stands in.
    records[3] = example({"image/encoded": encode(IMAGES[3]), "image/format": b"png"})
    write(directory / "digits.tfrecord", records)
    return directory


def train(input_fn, model_fn, **arguments):
    sgd = lambda: tf.train.GradientDescentOptimizer(0.1)  # noqa: E731
    return mox.run(input_fn=input_fn, model_fn=model_fn, optimizer_fn=sgd, run_mode="TRAIN", **arguments)


def plain_session(step):
    with tf.Session() as session:
        yield from until_end(lambda: step(session))


def monitored_session(step):
    tf.train.get_or_create_global_step()
    with tf.train.MonitoredTrainingSession() as session:
        while not session.should_stop():
            try:
                yield step(session)
            except tf.errors.OutOfRangeError:
                return


def supervisor(step):
    tf.train.get_or_create_global_step()
    chief = tf.train.Supervisor(logdir=None)
    with chief.managed_session() as session:
        while not chief.should_stop():
            try:
                yield step(session)
            except tf.errors.OutOfRangeError:
                return


SESSIONS = [plain_session, monitored_session, supervisor]


class TestManualOutsideARun:
    @pytest.mark.parametrize("session", SESSIONS)
    def test_strings(self, tmp_path, session):
        write_strings(tmp_path)
        with tf.Graph().as_default():
            image, label = strings(tmp_path, shuffle=False, num_epochs=2).get(["image", "label"])
            assert (image.dtype, label.dtype, image.shape.as_list()) == (tf.string, tf.string, [])
            assert list(session(lambda session: session.run((image, label)))) == 2 * STRINGS

    @pytest.mark.parametrize("session", SESSIONS)
    def test_images(self, tmp_path, session):
        write_digits(tmp_path)
        with tf.Graph().as_default():
            image, label = digits(tmp_path, shuffle=False, num_epochs=1).get(["image", "label"])
            assert (image.dtype, image.shape.as_list()) == (tf.uint8, [28, 28, 1])
            assert (label.dtype, label.shape.as_list()) == (tf.int64, [])
            got = list(session(lambda session: session.run((image, label))))
        assert [label for _, label in got] == [0, 1, 2, 0, 4, 5]
        assert all((image == kept).all() for (image, _), kept in zip(got, IMAGES, strict=True))

    def test_batches_by_the_era_s_queues(self, tmp_path):
        """`tf.train.batch` behind the data set, its threads started by the monitored session."""
        ids = write_numbers(tmp_path, [30])
        with tf.Graph().as_default():
            (number,) = numbers(tmp_path, shuffle=False, num_epochs=1).get(["id"])
            batch = tf.train.batch([number], 5)
            got = [values.tolist() for values in monitored_session(lambda session: session.run(batch))]
        assert sum(got, []) == ids and {len(values) for values in got} == {5}


class TestManualInARun:
    def test_strings(self, tmp_path):
        write_strings(tmp_path / "data")

        def input_fn(mode, **kwargs):
            image, label = strings(tmp_path / "data", shuffle=False, num_epochs=1).get(["image", "label"])
            return image, label

        result, seen = run_seeing(input_fn, batch_size=4)
        assert sum(seen, []) == [image for image, _ in STRINGS] and result.samples == 10

    def test_images_with_their_own_augmentation(self, tmp_path):
        write_digits(tmp_path / "data")

        def input_fn(mode, **kwargs):
            image, label = digits(tmp_path / "data", shuffle=False, num_epochs=1).get(["image", "label"])
            image = tf.image.flip_left_right(image)
            return image, label

        _, seen = run_seeing(input_fn, batch_size=3)
        assert (np.concatenate(seen) == np.stack(IMAGES)[:, :, ::-1]).all()

    def test_batch_size_is_known_where_the_data_has_no_end(self, tmp_path):
        write_numbers(tmp_path, [10])
        shapes = []

        def input_fn(mode, **kwargs):
            return numbers(tmp_path).get(["id"])

        def model_fn(inputs, mode, **kwargs):
            shapes.append(inputs[0].shape.as_list())
            return mox.ModelSpec(loss=tf.get_variable("w", []))

        train(input_fn, model_fn, batch_size=4, max_number_of_steps=2)
        assert shapes == [[4]]


class TestOrderAndEnd:
    def test_files_one_after_the_other_without_shuffling(self, tmp_path):
        ids = write_numbers(tmp_path, [70, 1, 130])
        with tf.Graph().as_default():
            assert column(numbers(tmp_path, shuffle=False, num_epochs=2), "id") == 2 * ids

    def test_every_epoch_is_shuffled_anew(self, tmp_path):
        ids = write_numbers(tmp_path, [70, 30])
        with tf.Graph().as_default():
            got = column(numbers(tmp_path, num_epochs=3), "id")
        epochs = [got[:100], got[100:200], got[200:]]
        assert [sorted(epoch) for epoch in epochs] == [ids] * 3
        assert len({tuple(epoch) for epoch in [ids, *epochs]}) == 4

    def test_without_a_number_of_epochs_there_is_no_end(self, tmp_path):
        ids = write_numbers(tmp_path, [7])
        with tf.Graph().as_default():
            assert column(numbers(tmp_path, shuffle=False), "id", limit=500) == (ids * 72)[:500]

    def test_a_graph_seed_fixes_the_order(self, tmp_path):
        write_numbers(tmp_path, [100])

        def order(seed):
            with tf.Graph().as_default():
                tf.set_random_seed(seed)
                return column(numbers(tmp_path, num_epochs=1), "id")

        assert order(1) == order(1) != order(2)

    def test_features_belong_together_over_several_calls_of_get(self, tmp_path):
        write(tmp_path / "a", [example({"x": i, "y": 10 * i}) for i in range(50)])
        decoder = slim.tfexample_decoder
        with tf.Graph().as_default(), tf.Session() as session:
            dataset = mox.get_tfrecord(
                str(tmp_path), "a", {"x": NUMBER, "y": NUMBER}, {"x": decoder.Tensor("x"), "y": decoder.Tensor("y")}
            )
            (x,), (y,) = dataset.get(["x"]), dataset.get(["y"])
            for _ in range(50):
                left, right = session.run([x, y])
                assert right == 10 * left


class TestArguments:
    def test_unknown_features_are_named(self, tmp_path):
        write_numbers(tmp_path, [3])
        with tf.Graph().as_default():
            dataset = numbers(tmp_path)
            with pytest.raises(ValueError, match="no feature 'label'; there are id"):
                dataset.get(["label"])
            with pytest.raises(ValueError, match="expected a list of names"):
                dataset.get("id")
            with pytest.raises(ValueError, match="no feature 'moxing/number'"):
                dataset.get(["moxing/number"])

    def test_handlers_without_their_keys(self, tmp_path):
        write_digits(tmp_path)
        keys = {"image/encoded": tf.FixedLenFeature((), tf.string)}
        with tf.Graph().as_default(), pytest.raises(ValueError, match=r"handlers\['image'\].*'image/format'.*encoded"):
            mox.get_tfrecord(str(tmp_path), "*", keys, {"image": slim.tfexample_decoder.Image()})

    @pytest.mark.parametrize("wrong", [{"num_epochs": 0}, {"num_samples": -1}, {"num_epochs": 1.5}])
    def test_counts(self, tmp_path, wrong):
        write_numbers(tmp_path, [3])
        with tf.Graph().as_default(), pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
            numbers(tmp_path, **wrong)

    def test_num_samples_may_be_wrong(self, tmp_path):
        ids = write_numbers(tmp_path, [7])
        with tf.Graph().as_default(), warnings_logged() as warnings:
            assert column(numbers(tmp_path, num_samples=5, shuffle=False, num_epochs=1), "id") == ids
        assert ["num_samples=5" in warning for warning in warnings] == [True]


class Doubled(BaseTFRecordDataset):
    """The later way."""

    def _build_features(self, number):
        self._add_feature("number", number)
        self._add_feature("doubled", 2 * number)


class FirstVersion(BaseTFRecordDataset):
    """The way of 2018."""

    def _parser(self, record):
        parsed = tf.parse_single_example(record, {"id": NUMBER})
        return parsed["id"], 2 * parsed["id"]

    def _build_feature(self, number, doubled):
        self._add_feature("number", number)
        self._add_feature("doubled", doubled)


LATER = {"feature_keys": ["id"], "feature_values": [NUMBER]}


def metadata_of(directory, pattern="*.tfrecord"):
    return BaseTFRecordMetadata(str(directory), pattern)


class TestClasses:
    @pytest.mark.parametrize(("kind", "keys"), [(Doubled, LATER), (FirstVersion, {})])
    def test_both_generations(self, tmp_path, kind, keys):
        ids = write_numbers(tmp_path, [40, 30])
        with tf.Graph().as_default():
            dataset = kind(metadata_of(tmp_path), **keys, shuffle=False, num_parallel=3, num_epochs=2)
            assert rows(dataset, ["doubled", "number"]) == [(2 * i, i) for i in 2 * ids]

    def test_without_methods_the_keys_are_the_features(self, tmp_path):
        write_numbers(tmp_path, [3], name=b"x")
        with tf.Graph().as_default():
            values = [tf.FixedLenFeature([], tf.string), NUMBER]
            dataset = BaseTFRecordDataset(metadata_of(tmp_path), ["name", "id"], values, shuffle=False, num_epochs=1)
            assert rows(dataset, ["id", "name"]) == [(0, b"x"), (1, b"x"), (2, b"x")]

    def test_a_parser_may_return_one_tensor_of_records_that_are_no_examples(self, tmp_path):
        class Raw(BaseTFRecordDataset):
            def _parser(self, record):
                return tf.decode_raw(record, tf.uint8)

            def _build_features(self, values):
                self._add_feature("sum", tf.reduce_sum(tf.cast(values, tf.int32)))

        write(tmp_path / "a", [bytes([1, 2, 3]), bytes([250, 250])])
        with tf.Graph().as_default():
            assert column(Raw(metadata_of(tmp_path, "a"), shuffle=False, num_epochs=1), "sum") == [6, 500]

    @pytest.mark.parametrize(("drop", "lengths"), [(False, [4, 4, 2]), (True, [4, 4])])
    def test_batches(self, tmp_path, drop, lengths):
        ids = write_numbers(tmp_path, [6, 4])
        with tf.Graph().as_default():
            dataset = Doubled(
                metadata_of(tmp_path), **LATER, shuffle=False, num_epochs=1, batch_size=4, drop_remainder=drop
            )
            assert dataset.get(["number"])[0].shape.as_list() == [4 if drop else None]
            got = column(dataset, "doubled")
        assert [len(batch) for batch in got] == lengths
        assert sum(got, []) == [2 * i for i in ids[: sum(lengths)]]

    def test_batches_in_a_run(self, tmp_path):
        ids = write_numbers(tmp_path, [6, 4])

        def input_fn(mode, **kwargs):
            dataset = Doubled(metadata_of(tmp_path), **LATER, shuffle=False, num_epochs=1, batch_size=4)
            return dataset.get(["number"])

        result, seen = run_seeing(input_fn, batch_size=None)
        assert seen == [ids[:4], ids[4:8], ids[8:]] and result.samples == 10

    def test_threads_of_its_own(self, tmp_path):
        ids = write_numbers(tmp_path, [6])
        with tf.Graph().as_default():
            dataset = Doubled(metadata_of(tmp_path), **LATER, shuffle=False, num_epochs=1, private_num_threads=2)
            assert column(dataset, "number") == ids

    def test_reading_far_ahead_of_a_slow_reader_is_no_damage(self, tmp_path):
        ids = write_numbers(tmp_path, [2000, 1000])
        with tf.Graph().as_default(), tf.Session() as session, warnings_logged() as warnings:
            dataset = Doubled(metadata_of(tmp_path), **LATER, shuffle=False, num_parallel=16, num_epochs=1)
            (number,) = dataset.get(["number"])
            got = []
            for value in until_end(lambda: session.run(number)):
                got.append(int(value))
                if value % 1000 == 0:
                    time.sleep(0.1)
        assert got == ids and warnings == []

    def test_shuffling_over_a_small_buffer(self, tmp_path):
        ids = write_numbers(tmp_path, [300, 200])
        with tf.Graph().as_default():
            got = column(Doubled(metadata_of(tmp_path), **LATER, num_epochs=1, shuffle_buffer_size=50), "number")
        assert sorted(got) == ids != got


class TestSparseFeatures:
    WORDS = ([b"a"], [], [b"b", b"c", b"d"], [b"e"])

    class Sentences(BaseTFRecordDataset):
        def _build_features(self, words, number):
            self._add_feature("words", words)
            self._add_feature("count", tf.size(words.values))
            self._add_feature("id", number)

    def sentences(self, directory, **arguments):
        records = [example({"id": i, **({"words": words} if words else {})}) for i, words in enumerate(self.WORDS)]
        write(directory / "a.tfrecord", records)
        keys, values = ["words", "id"], [tf.VarLenFeature(tf.string), NUMBER]
        return self.Sentences(metadata_of(directory), keys, values, shuffle=False, num_epochs=1, **arguments)

    def test_single_records(self, tmp_path):
        with tf.Graph().as_default():
            got = rows(self.sentences(tmp_path), ["words", "count", "id"])
        assert [words.values.tolist() for words, _, _ in got] == list(self.WORDS)
        assert [int(count) for _, count, _ in got] == [1, 0, 3, 1]

    def test_batches(self, tmp_path):
        with tf.Graph().as_default():
            ((words,), _) = rows(self.sentences(tmp_path, batch_size=3), ["words"])
        assert words.dense_shape.tolist() == [3, 3]
        assert words.indices.tolist() == [[0, 0], [2, 0], [2, 1], [2, 2]]

    def test_a_bad_record_among_them(self, tmp_path):
        """What stands in for the end of the data has to be sparse as well."""
        with tf.Graph().as_default():
            dataset = self.sentences(tmp_path)
        flip_byte(tmp_path / "a.tfrecord", (tmp_path / "a.tfrecord").stat().st_size - 6)
        with tf.Graph().as_default():
            dataset = self.Sentences(
                metadata_of(tmp_path), ["words", "id"], [tf.VarLenFeature(tf.string), NUMBER], False, num_epochs=1
            )
            assert column(dataset, "id") == [0, 1, 2]

    def test_in_a_run_with_a_model_on_them(self, tmp_path):
        def input_fn(mode, **kwargs):
            number, words = self.sentences(tmp_path).get(["id", "words"])
            return number, words

        def model_fn(inputs, mode, **kwargs):
            words = tf.strings.reduce_join(tf.sparse.to_dense(inputs[1], default_value=""), -1)
            return mox.ModelSpec(loss=tf.get_variable("w", []), output_info={"words": words})

        seen = []
        train(
            input_fn,
            model_fn,
            batch_size=4,
            max_number_of_steps=10,
            output_fn=lambda outputs: seen.extend(output["words"].tolist() for output in outputs),
            output_every_n_steps=1,
        )
        assert seen == [[b"a", b"", b"bcd", b"e"]]


class TestClassErrors:
    def test_no_keys(self, tmp_path):
        write_numbers(tmp_path, [3])
        with tf.Graph().as_default(), pytest.raises(ValueError, match="feature_keys: expected the keys"):
            Doubled(metadata_of(tmp_path))

    @pytest.mark.parametrize("values", [[], [NUMBER, NUMBER], None])
    def test_keys_and_values_of_different_length(self, tmp_path, values):
        write_numbers(tmp_path, [3])
        with tf.Graph().as_default(), pytest.raises(ValueError, match=r"feature_keys=\['id'\].*one value for each key"):
            Doubled(metadata_of(tmp_path), feature_keys=["id"], feature_values=values)

    def test_a_key_twice(self, tmp_path):
        write_numbers(tmp_path, [3])
        with tf.Graph().as_default(), pytest.raises(ValueError, match=r"feature_keys=\['id', 'id'\]"):
            Doubled(metadata_of(tmp_path), feature_keys=["id", "id"], feature_values=[NUMBER, NUMBER])

    def test_no_feature_named(self, tmp_path):
        class Nothing(BaseTFRecordDataset):
            def _build_features(self, number):
                return {"number": number}

        write_numbers(tmp_path, [3])
        with tf.Graph().as_default(), pytest.raises(ValueError, match="Nothing: _build_features named no feature"):
            Nothing(metadata_of(tmp_path), **LATER).get(["number"])

    def test_a_parser_alone(self, tmp_path):
        class Alone(BaseTFRecordDataset):
            def _parser(self, record):
                return tf.parse_single_example(record, {"id": NUMBER})["id"]

        write_numbers(tmp_path, [3])
        with tf.Graph().as_default(), pytest.raises(ValueError, match="Alone: .*_build_features"):
            Alone(metadata_of(tmp_path)).get(["id"])

    def test_a_directory_in_place_of_metadata(self, tmp_path):
        with tf.Graph().as_default(), pytest.raises(ValueError, match="metadata=.*expected a BaseTFRecordMetadata"):
            Doubled(str(tmp_path), **LATER)

    @pytest.mark.parametrize(
        "wrong", [{"batch_size": 0}, {"num_parallel": 0}, {"num_epochs": 0}, {"shuffle_buffer_size": -1}]
    )
    def test_counts(self, tmp_path, wrong):
        write_numbers(tmp_path, [3])
        with tf.Graph().as_default(), pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
            Doubled(metadata_of(tmp_path), **LATER, **wrong)


class TestBadRecords:
    def run(self, tmp_path, dataset=numbers, **arguments):
        def input_fn(mode, **kwargs):
            return dataset(tmp_path / "data", shuffle=False, num_epochs=1).get(["id"])

        settings = {"log_dir": str(tmp_path / "log"), "mode": "TRAIN", **arguments}
        result, seen = run_seeing(input_fn, **settings)
        entries = journal(tmp_path / "log")
        assert [(bad.file, bad.offset, bad.reason) for bad in result.bad_samples] == [
            (entry["file"], entry["offset"], entry["reason"]) for entry in entries
        ]
        return sum(seen, []), entries

    def test_every_kind_of_damage_in_one_run(self, tmp_path):
        """Each costs its own record and is told with file, place and reason."""
        mox.set_flag("max_bad_samples", 10)
        path = tmp_path / "data" / "a.tfrecord"
        records = [example({"id": i}) for i in range(20)]
        records[5] = b"<html>no example</html>"
        records[9] = example({"identity": 9, "x": 1})
        records[12] = example({"id": b"twelve"})
        offsets = write(path, records)
        flip_byte(path, offsets[2] + 12 + 4)
        path.write_bytes(path.read_bytes()[:-7])
        write(tmp_path / "data" / "b.tfrecord", [example({"id": 20}), example({"id": 21})])
        seen, entries = self.run(tmp_path)
        assert seen == [i for i in range(22) if i not in (2, 5, 9, 12, 19)]
        assert {entry["file"] for entry in entries} == {str(path)}
        reasons = {entry["offset"]: entry["reason"] for entry in entries}
        assert sorted(reasons) == [offsets[i] for i in (2, 5, 9, 12, 19)]
        assert "checksum" in reasons[offsets[2]]
        assert reasons[offsets[5]] == "not a tf.train.Example"
        assert reasons[offsets[9]] == "has no 'id'; it has identity, x"
        assert "'id' is a bytes_list" in reasons[offsets[12]]
        assert "ends inside a record" in reasons[offsets[19]]

    def test_the_last_record(self, tmp_path):
        """Nothing comes after it that would show the gap."""
        path = tmp_path / "data" / "a.tfrecord"
        offsets = write(path, [example({"id": i}) for i in range(5)])
        flip_byte(path, offsets[4] + 12 + 4)
        seen, entries = self.run(tmp_path)
        assert seen == [0, 1, 2, 3] and [entry["offset"] for entry in entries] == [offsets[4]]

    def test_it_is_told_once_in_many_epochs_and_runs(self, tmp_path):
        path = tmp_path / "data" / "a.tfrecord"
        offsets = write(path, [example({"id": i}) for i in range(5)])
        flip_byte(path, offsets[1] + 12 + 4)

        def input_fn(mode, **kwargs):
            return numbers(tmp_path / "data").get(["id"])

        for steps in (12, 24):
            result, _ = run_seeing(input_fn, steps, log_dir=str(tmp_path / "log"))
            assert [bad.offset for bad in result.bad_samples] == [offsets[1]]
        assert len(journal(tmp_path / "log")) == 1

    def test_a_long_stretch_of_bad_records(self, tmp_path):
        """Longer than all that is read ahead, so that nothing good comes out for a while."""
        mox.set_flag("max_bad_samples", 2000)
        bad = range(100, 1100)
        records = [b"bad" if i in bad else example({"id": i}) for i in range(1200)]
        offsets = write(tmp_path / "data" / "a.tfrecord", records)
        seen, entries = self.run(tmp_path, batch_size=20)
        assert seen == [i for i in range(1200) if i not in bad]
        assert sorted(entry["offset"] for entry in entries) == [offsets[i] for i in bad]

    def test_images_that_cannot_be_decoded(self, tmp_path):
        mox.set_flag("max_bad_samples", 10)
        records = [slim_example(image, label) for label, image in enumerate(IMAGES)]
        broken = encode(IMAGES[2])[:300]
        records[2] = example({"image/encoded": broken, "image/format": b"png", "image/class/label": 2})
        records[4] = slim_example(noise(30, 20, 1), 4)
        offsets = write(tmp_path / "data" / "a.tfrecord", records)

        def input_fn(mode, **kwargs):
            image, label = digits(tmp_path / "data", shuffle=False, num_epochs=1).get(["image", "label"])
            return label, image

        result, seen = run_seeing(input_fn)
        assert sum(seen, []) == [0, 1, 3, 5]
        assert [bad.offset for bad in result.bad_samples] == [offsets[2], offsets[4]]
        reasons = [bad.reason for bad in result.bad_samples]
        assert "'image/encoded': PNG" in reasons[0] and "truncated" in reasons[0]
        assert "PNG, 20x30" in reasons[1]

    def test_records_a_parser_of_the_user_s_own_fails_on(self, tmp_path):
        class Floats(BaseTFRecordDataset):
            def _parser(self, record):
                return tf.reshape(tf.decode_raw(record, tf.int64), [])

            def _build_feature(self, number):
                self._add_feature("id", number)

        offsets = write(tmp_path / "data" / "a", [np.int64(1).tobytes(), b"longer than eight", np.int64(3).tobytes()])

        def make(directory, **arguments):
            return Floats(metadata_of(directory, "a"), **arguments)

        seen, entries = self.run(tmp_path, make)
        assert seen == [1, 3] and [entry["offset"] for entry in entries] == [offsets[1]]
        assert "features could not be built" in entries[0]["reason"]

    def test_the_wrong_key_stops_at_once_and_says_which_there_are(self, tmp_path):
        write_numbers(tmp_path / "data", [5000], label=1)
        handlers = {"image": slim.tfexample_decoder.Tensor("image/encoded")}

        def input_fn(mode, **kwargs):
            keys = {"image/encoded": tf.FixedLenFeature([], tf.string)}
            return mox.get_tfrecord(str(tmp_path / "data"), "*", keys, handlers).get(["image"])

        started = time.monotonic()
        with pytest.raises(TooManyBadSamplesError, match="has no 'image/encoded'; it has id, label") as caught:
            run_seeing(input_fn, log_dir=str(tmp_path / "log"))
        assert time.monotonic() - started < 20
        text = str(caught.value)
        assert "--max_bad_samples=0.1%" in text and str(tmp_path / "log" / "bad_samples.jsonl") in text
        assert len(text) < 2000
        assert len(journal(tmp_path / "log")) == 2

    def test_outside_a_run_the_session_says_it(self, tmp_path):
        write_numbers(tmp_path, [50])
        handlers = {"image": slim.tfexample_decoder.Tensor("image")}
        with tf.Graph().as_default(), tf.Session() as session:
            keys = {"image": tf.FixedLenFeature([], tf.string)}
            image = mox.get_tfrecord(str(tmp_path), "*", keys, handlers).get(["image"])
            with pytest.raises(tf.errors.OpError, match="has no 'image'; it has id"):
                session.run(image)

    def test_max_bad_samples_0_stops_at_the_first(self, tmp_path):
        mox.set_flag("max_bad_samples", 0)
        path = tmp_path / "data" / "a.tfrecord"
        offsets = write(path, [example({"id": i}) for i in range(50)])
        flip_byte(path, offsets[30] + 12 + 4)
        with pytest.raises(TooManyBadSamplesError, match=f"a.tfrecord at byte {offsets[30]}"):
            self.run(tmp_path)

    def test_what_was_trained_before_is_kept(self, tmp_path):
        path = tmp_path / "data" / "a.tfrecord"
        records = [example({"id": i}) if i < 2000 else b"bad" for i in range(2500)]
        write(path, records)
        with pytest.raises(TooManyBadSamplesError):
            self.run(tmp_path, batch_size=20)
        assert tf.train.latest_checkpoint(str(tmp_path / "log")).endswith("-100")


RADAR_SCRIPT = """
# Two radar bands per record, as scripts of 2018 read them: training, then evaluation, then a file of predictions.
import os
import numpy as np
import tensorflow as tf
import moxing.tensorflow as mox
from moxing.tensorflow.datasets.tfrecord_common import BaseTFRecordDataset, ImageClassificationTFRecordMetadata

tf.flags.DEFINE_string('data_url', None, '')
tf.flags.DEFINE_string('train_url', None, '')
flags = tf.flags.FLAGS
SIDE = 5


class RadarDataset(BaseTFRecordDataset):
  def _build_features(self, band_1, band_2, angle, id_or_label):
    self._add_feature('band_1', tf.reshape(band_1, [SIDE, SIDE]))
    self._add_feature('band_2', tf.reshape(band_2, [SIDE, SIDE]))
    self._add_feature('angle', angle)
    self._add_feature(self.last_name, id_or_label)


class TrainDataset(RadarDataset):
  last_name = 'label'


class TestDataset(RadarDataset):
  last_name = 'id'


def input_fn(run_mode, **kwargs):
  predict = run_mode == mox.ModeKeys.PREDICT
  meta = ImageClassificationTFRecordMetadata(
    flags.data_url, 'radar-test-*.tfrecord' if predict else 'radar-train-*.tfrecord',
    num_samples=12 if predict else 40, redirect_dir=None)
  last = tf.FixedLenFeature((), tf.string if predict else tf.int64, default_value=None)
  dataset = (TestDataset if predict else TrainDataset)(
    meta,
    feature_keys=['band_1', 'band_2', 'angle', 'id' if predict else 'is_iceberg'],
    feature_values=[tf.FixedLenFeature((SIDE * SIDE,), tf.float32, default_value=None),
                    tf.FixedLenFeature((SIDE * SIDE,), tf.float32, default_value=None),
                    tf.FixedLenFeature((), tf.float32, default_value=None),
                    last],
    shuffle=run_mode == mox.ModeKeys.TRAIN,
    num_parallel=16,
    num_epochs=None if run_mode == mox.ModeKeys.TRAIN else 1)
  if predict:
    band_1, band_2, name, angle = dataset.get(['band_1', 'band_2', 'id', 'angle'])
    # Strings could not be fetched from several GPUs: as numbers, one by character.
    label = tf.py_func(lambda text: np.array([int(byte) for byte in text], np.int64), [name], tf.int64)
    label.set_shape([3])
  else:
    band_1, band_2, label, angle = dataset.get(['band_1', 'band_2', 'label', 'angle'])
  image = tf.stack([band_1, band_2], axis=-1)
  if run_mode == mox.ModeKeys.TRAIN:
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_flip_up_down(image)
  return image, label, angle


def model_fn(inputs, run_mode, **kwargs):
  image, label, angle = inputs
  values = tf.concat([tf.reduce_mean(image, [1, 2]), tf.expand_dims(angle, -1)], -1)
  logits = tf.squeeze(tf.layers.dense(values, 1), -1)
  if run_mode == mox.ModeKeys.PREDICT:
    return mox.ModelSpec(output_info={'id': label, 'probability': tf.nn.sigmoid(logits)})
  truth = tf.cast(label, tf.float32)
  loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=truth, logits=logits))
  right = tf.reduce_mean(tf.cast(tf.equal(logits > 0, truth > 0.5), tf.float32))
  return mox.ModelSpec(loss=loss, log_info={'loss': loss, 'accuracy': right})


def output_fn(outputs):
  with open(os.path.join(flags.train_url, 'answers.csv'), 'a') as answers:
    for output in outputs:
      for name, probability in zip(output['id'], output['probability']):
        answers.write('%s,%f\\n' % (''.join(chr(code) for code in name), probability))


def main(_):
  common = dict(input_fn=input_fn, model_fn=model_fn)
  mox.run(optimizer_fn=mox.get_optimizer_fn('adam', learning_rate=0.1), run_mode=mox.ModeKeys.TRAIN, batch_size=10,
          log_dir=flags.train_url, max_number_of_steps=60, **common)
  mox.run(run_mode=mox.ModeKeys.EVAL, batch_size=8, checkpoint_path=flags.train_url, max_number_of_steps=5, **common)
  mox.run(run_mode=mox.ModeKeys.PREDICT, batch_size=4, checkpoint_path=flags.train_url, max_number_of_steps=3,
          output_fn=output_fn, output_every_n_steps=1, **common)


if __name__ == '__main__':
  tf.app.run(main=main)
"""


def test_a_script_of_the_time(tmp_path):
    """Icebergs are bright in the first band: the script finds that out, and names its answers right."""
    generator = np.random.default_rng(0)

    def record(is_iceberg, key, value):
        bands = generator.normal(size=(2, 25)) + [[2.0 * is_iceberg], [0.0]]
        return example(
            {"band_1": bands[0].tolist(), "band_2": bands[1].tolist(), "angle": float(is_iceberg) / 7, key: value}
        )

    for part in range(2):
        records = [record(i % 2, "is_iceberg", i % 2) for i in range(20)]
        write(tmp_path / "data" / f"radar-train-{part}.tfrecord", records)
    write(tmp_path / "data" / "radar-test-0.tfrecord", [record(i % 2, "id", b"%03d" % i) for i in range(12)])
    (tmp_path / "script.py").write_text(RADAR_SCRIPT)
    command = [sys.executable, "-m", "moxing", "run", "script.py", f"--data_url={tmp_path / 'data'}", "--train_url=log"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    answers = [line.split(",") for line in (tmp_path / "log" / "answers.csv").read_text().splitlines()]
    assert [name for name, _ in answers] == [f"{i:03d}" for i in range(12)]
    assert [float(probability) > 0.5 for _, probability in answers] == [i % 2 == 1 for i in range(12)]
    assert "bad sample" not in done.stderr + done.stdout


class TestGoingOn:
    """Two runs see what one run sees: the seed and the place in the data are in the checkpoint."""

    def compare(self, tmp_path, input_fn, count, **arguments):
        def run(directory, steps):
            _, seen = run_seeing(input_fn, steps, log_dir=str(tmp_path / directory), **arguments)
            return seen

        first = run("one", 1)
        shutil.copytree(tmp_path / "one", tmp_path / "two")
        whole = first + run("one", 100)
        parts = first + run("two", 37) + run("two", 100)
        assert len(whole) == 100 and parts == whole
        ids = sum(whole, [])
        epochs = [ids[start : start + count] for start in range(0, len(ids), count)]
        assert all(len(set(epoch)) == len(epoch) for epoch in epochs)
        assert all(set(epoch) == set(epochs[0]) for epoch in epochs[:-1])
        assert epochs[0] != epochs[1] and len(epochs[0]) == count

    def test_shuffled_records(self, tmp_path):
        write_numbers(tmp_path / "data", [100, 50])
        self.compare(tmp_path, lambda mode, **kwargs: numbers(tmp_path / "data").get(["id"]), 150, batch_size=4)

    def damaged(self, tmp_path):
        mox.set_flag("max_bad_samples", 50)
        records = [example({"id": i}) for i in range(150)]
        for i in (3, 4, 60, 149):
            records[i] = example({"other": i})
        offsets = write(tmp_path / "data" / "a.tfrecord", records)
        for i in (0, 30, 31, 32, 33, 100):
            flip_byte(tmp_path / "data" / "a.tfrecord", offsets[i] + 12 + 4)
        return 140

    def test_with_bad_records_among_them(self, tmp_path):
        count = self.damaged(tmp_path)
        self.compare(tmp_path, lambda mode, **kwargs: numbers(tmp_path / "data").get(["id"]), count, batch_size=4)

    def test_batches_of_the_data_set_s_own(self, tmp_path):
        count = self.damaged(tmp_path)

        def input_fn(mode, **kwargs):
            dataset = Doubled(metadata_of(tmp_path / "data"), **LATER, batch_size=4, shuffle_buffer_size=64)
            return dataset.get(["number"])

        self.compare(tmp_path, input_fn, count, batch_size=None)

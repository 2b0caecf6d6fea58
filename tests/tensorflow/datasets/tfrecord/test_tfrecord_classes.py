"""Subclasses of `BaseTFRecordDataset`."""

from __future__ import annotations

import time

import pytest
import tensorflow.compat.v1 as tf
from record_datasets import (
    LATER,
    NUMBER,
    Doubled,
    metadata_of,
    train,
)
from record_writing import (
    column,
    example,
    flip_byte,
    rows,
    run_seeing,
    until_end,
    warnings_logged,
    write,
    write_numbers,
)

import moxing.tensorflow as mox
from moxing.tensorflow.datasets.tfrecord_common import BaseTFRecordDataset


class FirstVersion(BaseTFRecordDataset):
    """The way of 2018."""

    def _parser(self, record):
        parsed = tf.parse_single_example(record, {"id": NUMBER})
        return parsed["id"], 2 * parsed["id"]

    def _build_feature(self, number, doubled):
        self._add_feature("number", number)
        self._add_feature("doubled", doubled)


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
        with tf.Graph().as_default(), pytest.raises(ValueError, match="Nothing: _build_features added no feature"):
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

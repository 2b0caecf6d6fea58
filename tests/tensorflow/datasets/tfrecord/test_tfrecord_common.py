"""`get_tfrecord` as the manual shows it, classes of the user's own, damaged files, and going on after a stop."""

from __future__ import annotations

import shutil

import pytest
import tensorflow.compat.v1 as tf
from record_datasets import (
    LATER,
    NUMBER,
    Doubled,
    metadata_of,
    numbers,
    write_digits,
)
from record_writing import (
    column,
    example,
    flip_byte,
    run_seeing,
    warnings_logged,
    write,
    write_numbers,
)

import moxing.tensorflow as mox
from moxing.tf1.contrib import slim


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
            with pytest.raises(ValueError, match="no feature 'label'; expected one of id"):
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

    @pytest.mark.slow
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

    @pytest.mark.slow
    def test_with_bad_records_among_them(self, tmp_path):
        count = self.damaged(tmp_path)
        self.compare(tmp_path, lambda mode, **kwargs: numbers(tmp_path / "data").get(["id"]), count, batch_size=4)

    @pytest.mark.slow
    def test_batches_of_the_data_set_s_own(self, tmp_path):
        count = self.damaged(tmp_path)

        def input_fn(mode, **kwargs):
            dataset = Doubled(metadata_of(tmp_path / "data"), **LATER, batch_size=4, shuffle_buffer_size=64)
            return dataset.get(["number"])

        self.compare(tmp_path, input_fn, count, batch_size=None)

"""Records that cannot be read or used."""

from __future__ import annotations

import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from record_datasets import (
    IMAGES,
    digits,
    metadata_of,
    numbers,
)
from record_writing import (
    encode,
    example,
    flip_byte,
    listed_bad_samples,
    noise,
    run_seeing,
    slim_example,
    write,
    write_numbers,
)

import moxing.tensorflow as mox
from moxing.tensorflow.datasets.bad_samples import TooManyBadSamplesError
from moxing.tensorflow.datasets.tfrecord_common import BaseTFRecordDataset
from moxing.tf1.contrib import slim


class TestBadRecords:
    def run(self, tmp_path, dataset=numbers, **arguments):
        def input_fn(mode, **kwargs):
            return dataset(tmp_path / "data", shuffle=False, num_epochs=1).get(["id"])

        settings = {"log_dir": str(tmp_path / "log"), "mode": "TRAIN", **arguments}
        result, seen = run_seeing(input_fn, **settings)
        entries = listed_bad_samples(tmp_path / "log")
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
        assert len(listed_bad_samples(tmp_path / "log")) == 1

    @pytest.mark.slow
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
        assert len(listed_bad_samples(tmp_path / "log")) == 2

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

"""TFRecord files before there is a graph: how many records, which files, which classes."""

from __future__ import annotations

import shutil

import pytest
import tensorflow.compat.v1 as tf
from record_writing import column, flip_byte, warnings_logged, write, write_numbers

import moxing.tensorflow as mox
from moxing.tensorflow.datasets.tfrecord import tfrecord_metadata
from moxing.tensorflow.datasets.tfrecord.tfrecord_common import BaseTFRecordDataset, BaseTFRecordMetadata


def numbers(metadata):
    with tf.Graph().as_default():
        values = [tf.FixedLenFeature([], tf.int64)]
        return column(BaseTFRecordDataset(metadata, ["id"], values, shuffle=False, num_epochs=1), "id")


def test_records_are_counted_over_all_files(tmp_path):
    write_numbers(tmp_path, [3, 0, 4])
    metadata = BaseTFRecordMetadata(str(tmp_path), "*.tfrecord")
    assert metadata.num_samples == metadata.total_num_samples == len(metadata.index) == 7
    assert metadata.files == [str(tmp_path / f"part-{part}.tfrecord") for part in range(3)]


def test_several_patterns(tmp_path):
    write_numbers(tmp_path, [3, 2, 4])
    assert BaseTFRecordMetadata(str(tmp_path), ["part-0*", "part-2*"]).num_samples == 7


def test_a_given_count_saves_the_counting(tmp_path, monkeypatch):
    write_numbers(tmp_path, [3])
    monkeypatch.setattr(tfrecord_metadata.RecordIndex, "build", lambda files: pytest.fail("counted"))
    metadata = BaseTFRecordMetadata(str(tmp_path), "*", num_samples=3)
    assert metadata.num_samples == metadata.total_num_samples == 3


def test_a_wrong_count_is_told_and_all_records_are_read(tmp_path):
    write_numbers(tmp_path, [3, 4])
    with warnings_logged() as warnings:
        metadata = BaseTFRecordMetadata(str(tmp_path), "*.tfrecord", num_samples=9)
        assert numbers(metadata) == list(range(7))
        assert numbers(metadata) == list(range(7))
    (warning,) = warnings
    assert "num_samples=9" in warning and str(tmp_path) in warning and "hold 7 records" in warning


def test_a_right_count_is_no_warning(tmp_path):
    write_numbers(tmp_path, [3])
    with warnings_logged() as warnings:
        assert numbers(BaseTFRecordMetadata(str(tmp_path), "*", num_samples=3)) == [0, 1, 2]
    assert warnings == []


def test_a_damaged_place_is_no_record(tmp_path):
    offsets = write(tmp_path / "a", [b"first", b"second", b"third"])
    flip_byte(tmp_path / "a", offsets[1])
    metadata = BaseTFRecordMetadata(str(tmp_path), "a")
    assert metadata.num_samples == 2


@pytest.mark.parametrize("count", [0, -1, 2.5, True, "3"])
def test_counts_that_are_none(tmp_path, count):
    write_numbers(tmp_path, [3])
    with pytest.raises(ValueError, match="num_samples="):
        BaseTFRecordMetadata(str(tmp_path), "*", num_samples=count)


def test_no_files_and_no_directory(tmp_path):
    write_numbers(tmp_path, [3])
    with pytest.raises(ValueError, match=r"file_pattern='\*\.record'.*part-0\.tfrecord"):
        BaseTFRecordMetadata(str(tmp_path), "*.record")
    with pytest.raises(FileNotFoundError, match="base_dir"):
        BaseTFRecordMetadata(str(tmp_path / "no"), "*")


class TestRedirect:
    def test_records_come_from_the_other_directory(self, tmp_path):
        write_numbers(tmp_path / "far", [3, 2])
        shutil.copytree(tmp_path / "far", tmp_path / "near")
        write(tmp_path / "near" / "other.tfrecord", [b"not in far"])
        metadata = mox.ImageClassificationTFRecordMetadata(
            str(tmp_path / "far") + "/", "*.tfrecord", redirect_dir=str(tmp_path / "near")
        )
        for path in (tmp_path / "far").glob("*.tfrecord"):
            path.write_bytes(b"")
        assert metadata.num_samples == 5
        assert numbers(metadata) == list(range(5))

    def test_directories_below(self, tmp_path):
        write_numbers(tmp_path / "far" / "a" / "b", [2])
        shutil.copytree(tmp_path / "far", tmp_path / "near")
        metadata = BaseTFRecordMetadata(str(tmp_path / "far"), "**/*.tfrecord", redirect_dir=str(tmp_path / "near"))
        assert metadata.files == [str(tmp_path / "near" / "a" / "b" / "part-0.tfrecord")]

    @pytest.mark.parametrize("schemes", [("file://", ""), ("", "file://"), ("file://", "file://")])
    def test_urls_of_local_directories(self, tmp_path, schemes):
        write_numbers(tmp_path / "far", [2])
        write_numbers(tmp_path / "near", [3])
        far, near = (f"{scheme}{tmp_path}/{name}" for scheme, name in zip(schemes, ("far", "near"), strict=True))
        metadata = BaseTFRecordMetadata(far, "*.tfrecord", redirect_dir=near)
        assert metadata.files == [str(tmp_path / "near" / "part-0.tfrecord")]
        assert metadata.num_samples == 3

    def test_a_missing_file_is_named(self, tmp_path):
        write_numbers(tmp_path / "far", [3, 2])
        write_numbers(tmp_path / "near", [3])
        with pytest.raises(ValueError, match=r"redirect_dir=.*files are missing, .*near/part-1\.tfrecord"):
            BaseTFRecordMetadata(str(tmp_path / "far"), "*", redirect_dir=str(tmp_path / "near"))


class TestClasses:
    def metadata(self, tmp_path, **arguments):
        write_numbers(tmp_path, [1])
        return mox.ImageClassificationTFRecordMetadata(str(tmp_path), "*.tfrecord", **arguments)

    @pytest.mark.parametrize("text", ["0: daisy\n1: red rose\n", "0:daisy\n1:red rose"])
    def test_names_from_the_file_beside_the_records(self, tmp_path, text):
        (tmp_path / "labels.txt").write_text(text)
        metadata = self.metadata(tmp_path)
        assert metadata.labels_to_names == {0: "daisy", 1: "red rose"}
        assert metadata.num_classes == 2

    def test_a_file_of_another_name(self, tmp_path):
        (tmp_path / "classes").write_text("0: a\n3: b\n")
        metadata = self.metadata(tmp_path, label_map_file="classes")
        assert metadata.labels_to_names == {0: "a", 3: "b"} and metadata.num_classes == 4

    @pytest.mark.parametrize("file", ["labels.txt", None])
    def test_no_file(self, tmp_path, file):
        metadata = self.metadata(tmp_path, label_map_file=file)
        assert metadata.labels_to_names is None and metadata.num_classes == 0

    def test_a_file_may_be_left_aside(self, tmp_path):
        (tmp_path / "labels.txt").write_text("nonsense\n0: a\n")
        assert self.metadata(tmp_path, label_map_file=None).labels_to_names is None

    def test_the_number_of_classes_may_be_larger_than_the_file_names(self, tmp_path):
        (tmp_path / "labels.txt").write_text("0: a\n1: b\n")
        assert self.metadata(tmp_path, num_classes=5).num_classes == 5

    def test_the_number_of_classes_may_not_be_smaller(self, tmp_path):
        (tmp_path / "labels.txt").write_text("0: a\n1: b\n")
        with pytest.raises(ValueError, match=r"num_classes=1: .*labels\.txt numbers its classes up to 1"):
            self.metadata(tmp_path, num_classes=1)

    @pytest.mark.parametrize("count", [-1, 2.0])
    def test_numbers_of_classes_that_are_none(self, tmp_path, count):
        with pytest.raises(ValueError, match="num_classes="):
            self.metadata(tmp_path, num_classes=count)


def test_metadata_builds_no_graph(tmp_path):
    write_numbers(tmp_path, [3])
    with tf.Graph().as_default() as graph:
        assert mox.ImageClassificationTFRecordMetadata(str(tmp_path), "*").num_samples == 3
    assert graph.get_operations() == []


def test_the_old_import_path(tmp_path):
    from moxing.tensorflow.datasets import tfrecord_common

    assert tfrecord_common.BaseTFRecordMetadata is BaseTFRecordMetadata
    assert tfrecord_common.ImageClassificationTFRecordMetadata is mox.ImageClassificationTFRecordMetadata
    assert tfrecord_common.BaseTFRecordDataset is BaseTFRecordDataset
    assert tfrecord_common.ImageClassificationTFRecordDataset is mox.ImageClassificationTFRecordDataset
    assert tfrecord_common.get_tfrecord is mox.get_tfrecord

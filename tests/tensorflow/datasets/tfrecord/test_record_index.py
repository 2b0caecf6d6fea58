"""The index of records: numbers through the files."""

from __future__ import annotations

import numpy as np
import pytest
from record_bytes import make_records, write

import moxing as mox
from moxing.tensorflow.datasets.tfrecord.record_index import RecordIndex
from moxing.tensorflow.datasets.tfrecord.record_reader import RecordReader


class TestIndex:
    def test_numbers_run_through_the_files(self, tmp_path):
        contents = [make_records(3), [], make_records(5, seed=2)]
        paths = [write(tmp_path / f"f{i}", records) for i, records in enumerate(contents)]
        index = RecordIndex.build(paths)
        assert len(index) == 8 and index.paths == tuple(paths) and index.counts.tolist() == [3, 0, 5]
        assert index.locate(0) == (paths[0], 0, len(contents[0][0]))
        assert index.locate(3) == (paths[2], 0, len(contents[2][0]))
        assert index.locate(np.int64(7))[0] == paths[2] and type(index.locate(np.int64(7))[1]) is int
        for number in (-1, 8):
            with pytest.raises(IndexError, match=f"number={number}: .* from 0 to 7"):
                index.locate(number)

    def test_files_keep_the_given_order_and_may_come_twice(self, tmp_path, scans):
        a, b = write(tmp_path / "a", [b"a"]), write(tmp_path / "b", [b"b", b"c"])
        for _ in range(2):
            index = RecordIndex.build([b, a, b])
            assert RecordReader(index).read(range(len(index))) == [b"b", b"c", b"a", b"b", b"c"]
        assert sorted(scans) == ["a", "b"]

    def test_no_files_and_no_records(self, tmp_path):
        with pytest.raises(ValueError, match=r"paths=\[\]"):
            RecordIndex.build([])
        for name in ("a", "b"):
            (tmp_path / name).touch()
        with pytest.raises(ValueError, match="no record in any of the 2 files '.*a' ... '.*b': empty"):
            RecordIndex.build([str(tmp_path / "a"), str(tmp_path / "b")])
        assert not (tmp_path / ".moxing_index").exists()

    def test_object_stores_get_the_error_of_mox_file(self):
        with pytest.raises(mox.file.UnsupportedSchemeError, match="paths='s3://bucket/a'.*object stores"):
            RecordIndex.build(["s3://bucket/a"])

"""The index that is kept for the next run."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest
from record_bytes import RECORDS, flip, make_records, write

from moxing.tensorflow.datasets.tfrecord.record_index import RecordIndex
from moxing.tensorflow.datasets.tfrecord.record_reader import RecordReader


class TestCache:
    def test_the_second_time_nothing_is_scanned(self, tmp_path, scans, log):
        paths = [write(tmp_path / f"f{i}", make_records(10, seed=i)) for i in range(3)]
        Path(paths[1]).write_bytes(flip(bytearray(Path(paths[1]).read_bytes()), 0))
        first = RecordIndex.build(paths)
        assert sorted(scans) == ["f0", "f1", "f2"]
        said = [text for level, text in log if level == "INFO"]
        assert said[0].startswith("Automatically extracting num_samples from tfrecord.")
        assert said[1] == "Found 29 records in 3 tfrecord file(s)."
        log.clear()
        second = RecordIndex.build(paths)
        assert len(scans) == 3
        assert [level for level, _ in log] == ["WARNING"]  # the damage costs a record in every run
        assert second.damages == first.damages and second.counts.tolist() == first.counts.tolist() == [10, 9, 10]
        assert [second.locate(i) for i in range(29)] == [first.locate(i) for i in range(29)]
        (kept,) = (tmp_path / ".moxing_index").iterdir()
        assert kept.suffix == ".npz"

    def test_only_a_changed_file_is_scanned_again(self, tmp_path, scans):
        paths = [write(tmp_path / f"f{i}", make_records(10, seed=i)) for i in range(3)]
        RecordIndex.build(paths)
        scans.clear()
        write(tmp_path / "f1", make_records(4, seed=7))
        index = RecordIndex.build(paths)
        assert scans == ["f1"] and index.counts.tolist() == [10, 4, 10]
        status = os.stat(paths[2])
        os.utime(paths[2], ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        RecordIndex.build(paths)
        assert scans == ["f1", "f2"]
        RecordIndex.build(paths)
        assert scans == ["f1", "f2"]

    def test_a_moved_directory_keeps_its_index(self, tmp_path, scans):
        (tmp_path / "old").mkdir()
        write(tmp_path / "old" / "a", RECORDS)
        RecordIndex.build([str(tmp_path / "old" / "a")])
        os.rename(tmp_path / "old", tmp_path / "new")
        path = str(tmp_path / "new" / "a")
        index = RecordIndex.build([path])
        assert scans == ["a"] and index.locate(0)[0] == path

    def test_where_the_directory_cannot_be_written(self, tmp_path, scans, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / ".moxing_index").touch()  # a file where the directory would be: nobody can write there
        path = write(tmp_path / "data" / "a", RECORDS)
        for _ in range(2):
            assert len(RecordIndex.build([path])) == 9
        assert scans == ["a"]
        assert len(list((tmp_path / "cache" / "moxing" / "index").iterdir())) == 1

    def test_where_nothing_can_be_written(self, tmp_path, scans, monkeypatch, log):
        (tmp_path / "cache").touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        (tmp_path / ".moxing_index").touch()
        path = write(tmp_path / "a", RECORDS)
        for _ in range(2):
            assert len(RecordIndex.build([path])) == 9
        assert scans == ["a", "a"]
        assert any(level == "DEBUG" and "cannot be kept in" in text for level, text in log)
        assert not any(level == "WARNING" for level, _ in log)

    def test_a_directory_of_the_users_choice(self, tmp_path, scans):
        path = write(tmp_path / "a", RECORDS)
        for _ in range(2):
            RecordIndex.build([path], cache_dir=str(tmp_path / "mine"))
        assert scans == ["a"] and sorted(os.listdir(tmp_path)) == ["a", "mine"]

    @pytest.mark.parametrize(
        "damage", ["cut", "flipped", "garbage", "empty", "other version", "wrong offsets", "pickle"]
    )
    def test_a_damaged_index_is_written_again(self, tmp_path, scans, damage):
        path = write(tmp_path / "a", RECORDS)
        RecordIndex.build([path])
        (kept,) = (tmp_path / ".moxing_index").iterdir()
        good = kept.read_bytes()
        with np.load(kept) as stored:
            arrays = dict(stored)
        offsets = arrays["offsets"]
        changes = {
            "other version": {"version": np.array(99)},
            "wrong offsets": {"offsets": offsets + 10_000},
            "pickle": {"offsets": offsets.astype(object)},
        }
        stream = io.BytesIO()
        np.savez(stream, **{**arrays, **changes.get(damage, {})})
        contents = {
            "cut": good[: len(good) // 2],
            "flipped": bytes(flip(bytearray(good), good.index(offsets.tobytes()) + 20)),
            "garbage": b"garbage",
            "empty": b"",
        }
        kept.write_bytes(contents.get(damage, stream.getvalue()))
        for _ in range(2):
            index = RecordIndex.build([path])
            assert RecordReader(index).read(range(9)) == RECORDS
        assert scans == ["a", "a"]

"""Reading records by number, from many threads."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from record_bytes import RECORDS, STARTS, flip, frame, make_records, write

from moxing.tensorflow.datasets.tfrecord import record_reader
from moxing.tensorflow.datasets.tfrecord.record_index import RecordIndex
from moxing.tensorflow.datasets.tfrecord.record_reader import RecordReader


def count_open(folder: Path) -> int:
    """How many files below a folder this process has open."""
    links = [Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return sum(os.path.realpath(link).startswith(str(folder)) for link in links)


class TestReader:
    def test_any_order_any_kind_of_numbers(self, tmp_path):
        records = make_records(100)
        index = RecordIndex.build([write(tmp_path / "a", records[:60]), write(tmp_path / "b", records[60:])])
        reader = RecordReader(index)
        order = np.random.default_rng(0).permutation(100)
        assert reader.read(order) == [records[i] for i in order]
        assert reader.read([]) == [] and reader.read([99, 0, 99]) == [records[99], records[0], records[99]]
        with pytest.raises(IndexError, match="number=100"):
            reader.read([0, 100])

    def test_reasons(self, tmp_path):
        path = tmp_path / "a"
        path.write_bytes(flip(bytearray(b"".join(map(frame, RECORDS))), STARTS[4] + 13))
        reader = RecordReader(RecordIndex.build([str(path)]))
        assert reader.read([3, 4, 5]) == [RECORDS[3], None, RECORDS[5]]
        expected = "record 4 is damaged: the checksum of its data is wrong"
        assert reader.reason(4) == expected and reader.reason(3) == ""
        # Asked without a read before, as after a restart.
        assert RecordReader(RecordIndex.build([str(path)])).reason(4) == expected

    def test_only_the_last_reasons_are_kept(self, tmp_path, monkeypatch):
        monkeypatch.setattr(record_reader, "_MAX_REASONS", 2)
        path = Path(write(tmp_path / "a", RECORDS))
        reader = RecordReader(RecordIndex.build([str(path)]))
        path.unlink()
        assert reader.read(range(9)) == [None] * 9
        assert len(reader._reasons) == 2
        assert all(f"record {i} " in reader.reason(i) for i in range(9))

    def test_files_that_changed_or_went_away(self, tmp_path):
        paths = [write(tmp_path / name, RECORDS) for name in ("gone", "shorter", "other", "good")]
        index = RecordIndex.build(paths)
        reader = RecordReader(index)
        os.remove(paths[0])
        os.truncate(paths[1], STARTS[4] + 3)
        write(tmp_path / "other", [bytes(len(record) + 1) for record in RECORDS])
        assert reader.read([4, 13, 22, 31]) == [None, None, None, RECORDS[4]]
        assert "cannot be read: No such file" in reader.reason(4)
        assert "is no longer there" in reader.reason(13) and "is no longer there" in reader.reason(22)
        write(tmp_path / "gone", RECORDS)
        assert reader.read([4]) == [RECORDS[4]]

    def test_few_open_files_and_many_threads(self, tmp_path):
        records = make_records(400, 2000)
        paths = [write(tmp_path / f"f{i}", records[i * 20 : i * 20 + 20]) for i in range(20)]
        reader = RecordReader(RecordIndex.build(paths), open_files=3)
        wrong: list[int] = []

        def work(reader: RecordReader, seed: int) -> None:
            order = np.random.default_rng(seed).permutation(400)
            for chunk in np.split(order, 20):
                reader.will_need(chunk)
                wrong.extend(i for i, got in zip(chunk, reader.read(chunk), strict=True) if got != records[i])

        threads = [threading.Thread(target=work, args=(reader, seed)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == [] and reader.reason(0) == ""
        assert count_open(tmp_path) == 3
        del reader
        assert count_open(tmp_path) == 0
        with pytest.raises(ValueError, match="open_files=0"):
            RecordReader(RecordIndex.build(paths), open_files=0)

    def test_wanted_ranges_are_joined(self, tmp_path, monkeypatch):
        large = [bytes(100_000)] * 5
        paths = [write(tmp_path / "a", RECORDS), write(tmp_path / "b", large), write(tmp_path / "c", [b"c"])]
        index = RecordIndex.build([*paths[:2], paths[0], paths[2]])
        os.remove(paths[2])
        advised: list[tuple[int, int]] = []
        monkeypatch.setattr(os, "posix_fadvise", lambda fd, begin, length, advice: advised.append((begin, length)))
        # Small ones with gaps are one range; large ones only when they touch; a missing file is no error.
        RecordReader(index).will_need([8, 0, 2, 9, 10, 12, 14, 23])
        assert advised == [(0, STARTS[9]), (0, 200_032), (300_048, 100_016), (0, STARTS[1])]
        monkeypatch.delattr(os, "posix_fadvise")
        RecordReader(index).will_need([0])

"""Finding TFRecord files and scanning them: what damage costs."""

from __future__ import annotations

import gzip
import os
import random
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from record_bytes import RECORDS, STARTS, deliver, flip, frame, make_records, write, zero

import moxing as mox
from moxing.tensorflow.datasets.tfrecord import record_files
from moxing.tensorflow.datasets.tfrecord.record_files import find_files, scan
from moxing.tensorflow.datasets.tfrecord.record_index import RecordIndex
from moxing.tensorflow.datasets.tfrecord.record_reader import RecordReader


class TestScan:
    def test_finds_what_tensorflow_wrote(self, tmp_path):
        records = [*make_records(2000), b"", b"last"]
        path = write(tmp_path / "a", records)
        found = scan(path)
        assert found.lengths.tolist() == [len(record) for record in records]
        assert found.offsets.tolist() == np.cumsum([0, *(len(record) + 16 for record in records)])[:-1].tolist()
        assert found.damages == () and found.offsets.dtype == found.lengths.dtype == np.int64
        assert deliver(path) == records == list(tf.python_io.tf_record_iterator(path))

    def test_large_and_small_records(self, tmp_path):
        sizes = [70_000, 80_000, 10, 20, 2_500_000, 5, 65_536, 65_535, 0, 1_048_576]
        records = [random.Random(size).randbytes(size) for size in sizes]
        assert deliver(write(tmp_path / "a", records)) == records

    def test_the_data_of_large_records_is_not_read(self, tmp_path, monkeypatch):
        path = write(tmp_path / "a", [bytes(500_000)] * 20)
        amounts: list[int] = []
        pread = os.pread

        def counting(descriptor, count, offset):
            data = pread(descriptor, count, offset)
            amounts.append(len(data))
            return data

        monkeypatch.setattr(os, "pread", counting)
        assert len(scan(path).offsets) == 20
        # The first window, before it is known that the records are large.
        assert sum(amounts) < (1 << 20) + 20 * 12 + 1

    def test_progress_adds_up(self, tmp_path):
        path = write(tmp_path / "a", make_records(20_000))
        steps: list[int] = []
        scan(path, steps.append)
        assert sum(steps) == os.path.getsize(path) and len(steps) > 1

    def test_an_empty_file_has_no_records(self, tmp_path):
        (tmp_path / "a").touch()
        found = scan(str(tmp_path / "a"))
        assert len(found.offsets) == 0 and found.damages == ()

    @pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
    def test_compressed_files_are_refused_with_a_way_out(self, tmp_path, compression):
        path = str(tmp_path / "a b")
        options = tf.python_io.TFRecordOptions(getattr(tf.python_io.TFRecordCompressionType, compression))
        with tf.python_io.TFRecordWriter(path, options) as writer:
            for record in make_records(5):
                writer.write(record)
        with pytest.raises(ValueError, match=rf"a b' is compressed \({compression}\), which is not supported") as error:
            RecordIndex.build([path])
        command = str(error.value).partition("for example with: ")[2].replace("python -c", f"{sys.executable} -c")
        assert os.system(command) == 0
        assert deliver(path + ".plain") == make_records(5)

    def test_a_length_that_looks_like_a_compressed_file(self, tmp_path):
        # 0x8b1f = 35615 and 0x9c78 = 40056 are the first bytes of GZIP and ZLIB files, and lengths as good as any.
        for size in (0x088B1F, 0x9C78):
            records = [bytes(size), b"second"]
            content = bytearray(Path(write(tmp_path / "a", records)).read_bytes())
            assert gzip.compress(b"")[:2] == content[:2] or zlib.compress(b"")[:2] == content[:2]
            assert deliver(str(tmp_path / "a")) == records

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nothing-here"):
            RecordIndex.build([str(tmp_path / "nothing-here")])


#: Name: what is done to the file, records that are lost, where the scan notes a damage, and which.
DAMAGES = {
    "first byte of the length": (lambda c: flip(c, STARTS[4]), [4], STARTS[4], "length"),
    "last byte of the length": (lambda c: flip(c, STARTS[4] + 7), [4], STARTS[4], "length"),
    "checksum of the length": (lambda c: flip(c, STARTS[4] + 10), [4], STARTS[4], "length"),
    "length of the first": (lambda c: flip(c, 0), [0], 0, "length"),
    "length of the last": (lambda c: flip(c, STARTS[8] + 1), [8], STARTS[8], "length"),
    "data": (lambda c: flip(c, STARTS[4] + 13), [4], None, ""),
    "checksum of the data": (lambda c: flip(c, STARTS[5] - 1), [4], None, ""),
    "data of the last": (lambda c: flip(c, STARTS[9] - 5), [8], None, ""),
    "cut in a header": (lambda c: c[: STARTS[8] + 7], [8], STARTS[8], "ends inside"),
    "cut in the data": (lambda c: c[: STARTS[8] + 13], [8], STARTS[8], "ends inside"),
    "cut in the last checksum": (lambda c: c[:-1], [8], STARTS[8], "ends inside"),
    "cut between records": (lambda c: c[: STARTS[8]], [8], None, ""),
    "garbage between records": (
        lambda c: c[: STARTS[3]] + random.Random(0).randbytes(999) + c[STARTS[3] :],
        [],
        STARTS[3],
        "length",
    ),
    "zeros between records": (lambda c: c[: STARTS[3]] + bytes(5000) + c[STARTS[3] :], [], STARTS[3], "length"),
    "garbage at the end": (lambda c: c + b"garbage", [], STARTS[9], "ends inside"),
    "zeros at the end": (lambda c: c + bytes(4096), [], STARTS[9], "length"),
    "zeros over parts of two": (lambda c: zero(c, STARTS[4] - 9, STARTS[4] + 9), [3, 4], STARTS[3], "overwritten"),
    "zeros over a header": (lambda c: zero(c, STARTS[4], STARTS[4] + 12), [4], STARTS[4], "length"),
    "zeros from the data of one to the data of another": (
        lambda c: zero(c, STARTS[3] + 13, STARTS[6] + 20),
        [3, 4, 5, 6],
        STARTS[3],
        "overwritten",
    ),
    "bytes missing in the data": (lambda c: c[: STARTS[4] + 14] + c[STARTS[5] - 3 :], [4], STARTS[4], "overwritten"),
    "two damaged, one good between": (lambda c: flip(flip(c, STARTS[3]), STARTS[5]), [3, 5], STARTS[3], "length"),
    "damaged data behind a damaged header": (
        lambda c: flip(flip(c, STARTS[3]), STARTS[5] - 1),
        [3, 4],
        STARTS[3],
        "length",
    ),
}


class TestDamage:
    @pytest.mark.parametrize("name", DAMAGES)
    def test_only_damaged_records_are_lost(self, tmp_path, name):
        damage, lost, offset, reason = DAMAGES[name]
        content = damage(bytearray(b"".join(map(frame, RECORDS))))
        path = tmp_path / "a"
        path.write_bytes(content)
        assert deliver(str(path)) == [record for i, record in enumerate(RECORDS) if i not in lost]
        found = scan(str(path)).damages
        if offset is None:
            assert found == ()
        else:
            assert found[0].offset == offset and reason in found[0].reason and found[0].path == str(path)
            assert all(0 < one.length <= len(content) - one.offset for one in found)

    def test_the_length_of_a_damage_reaches_to_the_next_record(self, tmp_path):
        path = tmp_path / "a"
        path.write_bytes(flip(bytearray(b"".join(map(frame, RECORDS))), STARTS[4]))
        assert [(one.offset, one.length) for one in scan(str(path)).damages] == [(STARTS[4], STARTS[5] - STARTS[4])]

    def test_a_writer_that_died_and_one_that_went_on(self, tmp_path):
        # The header of the cut record promises more bytes than are left of it; what follows must not be lost with it.
        first, second = frame(b"a" * 1000), frame(b"b" * 2000)
        path = tmp_path / "a"
        path.write_bytes(first + second[:500] + b"".join(map(frame, RECORDS)) * 3)
        assert deliver(str(path)) == [b"a" * 1000, *RECORDS * 3]
        path.write_bytes(first + frame(b"c" * 10**6)[:500] + b"".join(map(frame, RECORDS)))
        assert deliver(str(path)) == [b"a" * 1000, *RECORDS]

    def test_records_inside_the_data_of_a_good_record_stay_there(self, tmp_path):
        nested = b"".join(map(frame, RECORDS))
        path = tmp_path / "a"
        content = frame(nested) + flip(bytearray(frame(b"damaged")), 0) + frame(b"last")
        path.write_bytes(content)
        assert deliver(str(path)) == [nested, b"last"]

    def test_a_header_inside_damaged_data_is_no_record(self, tmp_path):
        # Its length leads exactly to the next record, so only its data can tell.
        false = frame(bytes(100))[:12] + b"x" * 104
        path = tmp_path / "a"
        path.write_bytes(flip(bytearray(frame(b"y" * 50 + false[:-4])), 0) + frame(b"last"))
        assert scan(str(path)).offsets.tolist() == [16 + 50 + 112]
        assert deliver(str(path)) == [b"last"]

    def test_a_file_that_is_no_tfrecord(self, tmp_path):
        path = tmp_path / "a"
        path.write_bytes(random.Random(0).randbytes(200_000))
        (damage,) = scan(str(path)).damages
        assert (damage.offset, damage.length) == (0, 200_000) and "no valid record" in damage.reason
        with pytest.raises(ValueError, match=r"no record in '.*a': there is no valid record in this file"):
            RecordIndex.build([str(path)])
        good = write(tmp_path / "b", RECORDS)
        index = RecordIndex.build([str(path), good])
        assert index.counts.tolist() == [0, 9] and index.locate(0)[0] == good

    def test_damage_at_window_borders(self, tmp_path, monkeypatch):
        monkeypatch.setattr(record_files, "_WINDOW", 1000)
        monkeypatch.setattr(record_files, "_SEARCH_STEP", 64)
        records = [random.Random(i).randbytes(234) for i in range(40)]  # four records are exactly one window
        path = tmp_path / "a"
        for lost in range(40):
            content = bytearray(b"".join(map(frame, records)))
            zero(content, 250 * lost - 3 if lost else 0, 250 * lost + 3)
            path.write_bytes(content)
            kept = [i for i in range(40) if i not in (lost - 1, lost)]
            assert scan(str(path)).offsets.tolist() == [250 * i for i in kept]

    def test_a_large_damage_takes_seconds(self, tmp_path):
        path = tmp_path / "a"
        begin, end = frame(b"first"), frame(b"last")
        holes = bytes(20_000_000) + random.Random(0).randbytes(20_000_000) + b"\x05\0\0\0\0\0\0\0" * 500_000
        path.write_bytes(begin + holes + end)
        start = time.perf_counter()
        found = scan(str(path))
        assert time.perf_counter() - start < 20  # about one second; trying every byte in Python takes minutes
        assert found.offsets.tolist() == [0, len(begin) + len(holes)]
        assert [(one.offset, one.length) for one in found.damages] == [(len(begin), len(holes))]

    def test_the_log_names_five_damages(self, tmp_path, log):
        records = make_records(40)
        content = bytearray(b"".join(map(frame, records)))
        starts = np.cumsum([0, *(len(record) + 16 for record in records)]).tolist()
        for i in range(1, 15, 2):
            flip(content, starts[i])
        path = tmp_path / "a"
        path.write_bytes(content)
        index = RecordIndex.build([str(path)])
        assert len(index.damages) == 7 and len(index) == 33
        warnings = [text for level, text in log if level == "WARNING"]
        assert len(warnings) == 6 and f"{path}, byte {starts[1]}: the length" in warnings[0]
        assert "and 2 more" in warnings[5]


@settings(max_examples=150, deadline=None)
@given(
    records=st.lists(st.binary(max_size=60), min_size=1, max_size=12),
    places=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=3),
    window=st.integers(16, 200),
    large=st.integers(0, 80),
    step=st.integers(1, 50),
)
def test_flipped_bytes_cost_the_records_they_are_in(records, places, window, large, step):
    content = bytearray(b"".join(map(frame, records)))
    starts = np.cumsum([0, *(len(record) + 16 for record in records)])
    damaged = set()
    changes: dict[int, int] = {}
    for place, change in places:
        changes[int(place * len(content))] = change
    for position, change in changes.items():
        content[position] ^= change
        damaged.add(int(np.searchsorted(starts, position, side="right")) - 1)
    expected = [record for i, record in enumerate(records) if i not in damaged]
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(record_files, "_WINDOW", window)
        patch.setattr(record_files, "_LARGE_RECORD", large)
        patch.setattr(record_files, "_SEARCH_STEP", step)
        path = Path(folder, "a")
        path.write_bytes(content)
        found = scan(str(path))
        reader = RecordReader(RecordIndex([str(path)], [found]))
        delivered = [record for record in reader.read(range(len(found.offsets))) if record is not None]
    assert delivered == expected


class TestFindFiles:
    @pytest.fixture
    def folder(self, tmp_path):
        for name in ("train-1", "train-0", "eval-0", ".hidden", "sub/train-9", ".moxing_index/train-7", "train-d/x"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).touch()
        return str(tmp_path)

    @pytest.mark.parametrize(
        ("pattern", "expected"),
        [
            ("train-*", ["train-0", "train-1"]),
            ("*", ["eval-0", "train-0", "train-1"]),
            ("eval-0", ["eval-0"]),
            (["train-1", "eval-*", "*-1"], ["eval-0", "train-1"]),
            ("**/train-*", ["sub/train-9", "train-0", "train-1"]),
            ([".*", "*-0"], ["eval-0", "train-0"]),
            ([".moxing_index/*", "train-[1]"], ["train-1"]),
        ],
    )
    def test_matches(self, folder, pattern, expected):
        found = find_files(folder, pattern)
        assert [os.path.relpath(path, folder) for path in found] == expected

    def test_a_directory_with_brackets(self, tmp_path):
        (tmp_path / "a[1]").mkdir()
        write(tmp_path / "a[1]" / "x.tfrecord", [b"x"])
        for base in (tmp_path / "a[1]", f"file://{tmp_path}/a[1]"):
            assert find_files(str(base), "*.tfrecord") == [str(tmp_path / "a[1]" / "x.tfrecord")]

    def test_no_match_says_what_is_there(self, folder):
        with pytest.raises(ValueError, match=r"file_pattern='\*.tfrecord': no file in base_dir='.*' matches") as error:
            find_files(folder, "*.tfrecord")
        assert str(error.value).endswith("It holds eval-0, sub/, train-0, train-1, train-d/.")
        for i in range(3):
            Path(folder, f"x{i}").touch()
        with pytest.raises(ValueError, match=r"train-d/ and 3 more\.$"):
            find_files(folder, "*.tfrecord")

    def test_bad_arguments(self, tmp_path):
        with pytest.raises(ValueError, match="The directory is empty"):
            find_files(str(tmp_path), "*")
        with pytest.raises(FileNotFoundError, match="base_dir: no such directory.*nowhere"):
            find_files(str(tmp_path / "nowhere"), "*")
        for pattern in ("", [], [""], [3]):
            with pytest.raises(ValueError, match="file_pattern="):
                find_files(str(tmp_path), pattern)
        with pytest.raises(mox.file.UnsupportedSchemeError, match="base_dir='s3://bucket/data'"):
            find_files("s3://bucket/data", "*")

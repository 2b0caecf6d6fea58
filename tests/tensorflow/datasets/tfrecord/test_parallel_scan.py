"""Scanning several files in parallel."""

from __future__ import annotations

import io
import os
import sys
import time

import pytest
from record_bytes import RECORDS, write

from moxing.tensorflow.datasets.tfrecord import parallel_scan
from moxing.tensorflow.datasets.tfrecord.record_files import scan
from moxing.tensorflow.datasets.tfrecord.record_index import RecordIndex


def test_a_failing_file_ends_the_scan_of_the_others(tmp_path):
    paths = [write(tmp_path / f"f{i}", RECORDS) for i in range(30)]
    os.remove(paths[3])
    os.mkdir(paths[3])
    with pytest.raises(IsADirectoryError, match="f3"):
        RecordIndex.build(paths)


def test_a_bar_on_a_terminal_only(tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def slow(path, progress):
        time.sleep(0.3)
        return scan(path, progress)

    monkeypatch.setattr(parallel_scan, "scan", slow)
    monkeypatch.setattr(parallel_scan, "_SECONDS_BEFORE_BAR", 0.05)
    monkeypatch.setenv("TERM", "xterm")
    paths = [write(tmp_path / f"f{i}", RECORDS) for i in range(3)]
    shown = {}
    for name, stream, show in (
        ("bar", Terminal(), True),
        ("off", Terminal(), False),
        ("pipe", io.StringIO(), True),
    ):
        monkeypatch.setattr(sys, "stderr", stream)
        assert len(RecordIndex.build(paths, show, cache_dir=str(tmp_path / name))) == 27
        shown[name] = "Counting records" in stream.getvalue()
    assert shown == {"bar": True, "off": False, "pipe": False}

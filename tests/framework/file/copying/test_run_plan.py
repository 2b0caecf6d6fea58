"""Running a plan with threads."""

import os

import pytest
from copied_tree import NAMES, contents

import moxing as mox
from moxing.framework.file import file_io
from moxing.framework.file.copying import copy_file


@pytest.mark.parametrize("copy", [mox.file.copy, mox.file.copy_parallel])
def test_one_part_after_the_other_where_a_script_wants_that(proxy, s3_folder, tmp_path, monkeypatch, copy):
    size = 4 << 23
    (tmp_path / "large").write_bytes(os.urandom(size))
    monkeypatch.setattr(file_io, "_LARGE_FILE_METHOD", 2)
    copy(tmp_path / "large", s3_folder + "/large")
    copy(s3_folder + "/large", tmp_path / "copy")
    assert proxy.connections == 1
    monkeypatch.setattr(file_io, "_LARGE_FILE_METHOD", 1)
    monkeypatch.setattr(file_io, "_LARGE_FILE_TASK_NUM", 2)
    copy(tmp_path / "large", s3_folder + "/large")
    copy(s3_folder + "/large", tmp_path / "copy")
    assert proxy.connections == 2
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "large").read_bytes()


@pytest.mark.parametrize("threads", [1, 3, 64])
@pytest.mark.parametrize("is_processing", [True, False])
def test_any_number_of_threads(tmp_path, src, threads, is_processing):
    mox.file.copy_parallel(src, tmp_path / "dst", None, threads, is_processing, use_queue=is_processing)
    assert contents(tmp_path / "dst") == contents(src)


@pytest.mark.parametrize("threads", [0, -1, 1.5, None, True, "4"])
def test_a_wrong_number_of_threads(tmp_path, src, threads):
    with pytest.raises(ValueError, match="threads="):
        mox.file.copy_parallel(src, tmp_path / "dst", threads=threads)


def test_the_first_failure_stops_the_rest(tmp_path, src, monkeypatch):
    original = copy_file.copy_local

    def fail(source, target):
        if source.endswith("a.txt"):
            raise OSError(28, "No space left on device", target)
        original(source, target)

    monkeypatch.setattr(copy_file, "copy_local", fail)
    with pytest.raises(OSError, match="No space"):
        mox.file.copy_parallel(src, tmp_path / "dst", threads=1)
    assert len(contents(tmp_path / "dst")) < len(NAMES)

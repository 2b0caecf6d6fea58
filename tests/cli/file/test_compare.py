"""How `sync` compares files."""

import os
import time
from functools import partial

import pytest
from trees import WAYS, contents, put, run_file, source_and_target

from moxing.cli.file import compare as file_compare
from moxing.framework.file.entries import FileEntry
from moxing.framework.file.s3.clients import get_client

FILES = {"a.txt": "hello", "sub/b.txt": "bc", "sub/deep/c": "c", "data": "d", "data-twin/x": "x"}


@pytest.fixture(params=WAYS, ids=lambda way: "-".join(way))
def places(request, tmp_path):
    return source_and_target(request, tmp_path, FILES)


def age(root, seconds):
    """Makes local files older, and waits that long where the clock is the store's."""
    if "://" in root:
        time.sleep(seconds)
        return
    for path, _, names in os.walk(root):
        for name in names:
            moment = os.stat(os.path.join(path, name)).st_mtime - seconds
            os.utime(os.path.join(path, name), (moment, moment))


@pytest.fixture
def run(capfd):
    return partial(run_file, capfd, "sync")


def test_same_size_and_newer(places, run):
    src, dst = places
    run(src, dst)
    time.sleep(1.1)
    put(src, {"a.txt": "HELLO"})
    assert run(src, dst) == ["copied 1 file, 5 B; 4 files up to date"]
    assert contents(dst) == FILES | {"a.txt": "HELLO"}


def test_same_size_and_older_needs_checksum(places, run):
    src, dst = places
    age(src, 2)
    put(dst, FILES | {"a.txt": "HELLO"})
    assert run(src, dst) == ["copied 0 files, 0 B; 5 files up to date"]
    assert run("--checksum", src, dst) == ["copied 1 file, 5 B; 4 files up to date"]
    assert contents(dst) == FILES


def test_checksums_of_objects_in_parts(run, s3_folder, tmp_path):
    """The ETag of what came in parts is compared, too: by whoever uploaded it, with the usual sizes of parts."""
    (tmp_path / "from").mkdir()
    content = os.urandom(1 << 20) * 21
    (tmp_path / "from" / "large").write_bytes(content)
    run(tmp_path / "from", f"{s3_folder}/to")
    assert get_client("s3").head("tests", f"{s3_folder}/to/large".removeprefix("s3://tests/")).etag.endswith('-3"')
    assert run("--checksum", tmp_path / "from", f"{s3_folder}/to")[0].startswith("copied 0 files")
    assert run("--checksum", f"{s3_folder}/to", tmp_path / "from")[0].startswith("copied 0 files")
    (tmp_path / "from" / "large").write_bytes(content[:-1] + b"\0" if content[-1] else content[:-1] + b"\1")
    assert run("--checksum", tmp_path / "from", f"{s3_folder}/to")[0].startswith("copied 1 file, 22.0 MB")


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (10_500_000_000, 10_400_000_001, True),
        (10_500_000_000, 10_600_000_001, False),
        (10_500_000_000, 10_000_000_000, None),
        (11_500_000_000, 10_000_000_000, True),
        (10_000_000_000, 10_500_000_000, None),
        (10_000_000_000, 11_500_000_000, False),
    ],
)
def test_times_of_a_store_are_whole_seconds(ours, theirs, expected):
    entries = [FileEntry("a", False, 1, moment) for moment in (ours, theirs)]
    assert file_compare.source_is_newer(*entries) is expected

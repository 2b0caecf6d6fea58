"""The local cache: bounded, safe with several processes, never wrong."""

from __future__ import annotations

import atexit
import errno
import itertools
import math
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from record_writing import warnings_logged

import moxing as mox
from helpers.warm import PIPE, Program, WarmProcess
from moxing.framework.flags import FLAGS, FlagError
from moxing.tensorflow.datasets.stored import data_cache
from moxing.tensorflow.datasets.stored.data_cache import DataCache
from moxing.tensorflow.datasets.stored.objects import StoredObject, UnusableObjectError, describe_object


def item(name: str, content: bytes = b"x" * 100, version: str = "v1") -> StoredObject:
    return StoredObject(f"s3://bucket/{name}", len(content), version)


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("??/*"))


def age(folder: Path) -> None:
    """Makes all files those of an earlier run."""
    for path in folder.glob("??/*"):
        os.utime(path, (1, time.time() - 5000))


def test_what_is_written_is_read(tmp_path):
    cache = DataCache(str(tmp_path), 10_000)
    for name, content in (("a", b""), ("ü/\udcff", b"\0\xff" * 7), ("../../etc/passwd", b"key")):
        one = item(name, content)
        assert cache.read(one) is None
        cache.write(one, content)
        assert cache.read(one) == content
        assert DataCache(str(tmp_path), 10_000).read(one) == content
    assert cache.read(item("a", b"", "v2")) is None
    assert not [path for path in tmp_path.glob("*") if len(path.name) != 2 and path.name != "used"]


def test_damage_is_noticed(tmp_path):
    cache = DataCache(str(tmp_path), 10_000)
    content = os.urandom(100)
    for damage in (lambda data: data[:-1], lambda data: b"", lambda data: b"y" + data[1:], lambda data: data + b"z"):
        cache.write(item("a", content), content)
        (path,) = tmp_path.glob("??/*.object")
        path.write_bytes(damage(path.read_bytes()))
        with warnings_logged() as lines:
            assert cache.read(item("a", content)) is None
        assert "is damaged; fetching it again" in lines[0] and not path.exists()


def test_it_stays_below_its_limit(tmp_path):
    cache = DataCache(str(tmp_path), 1000)
    for number in range(50):
        cache.write(item(f"{number}"), b"x" * 100)
    assert 900 < size(tmp_path) <= 1000
    kept = [number for number in range(50) if cache.read(item(f"{number}"))]
    # What is in use stays: to replace it would mean that nothing is found in the next epoch.
    assert kept == list(range(9))
    cache.write(item("large", b"x" * 5000), b"x" * 5000)
    assert size(tmp_path) <= 1000


def test_what_is_too_large_keeps_nothing_smaller_out(tmp_path):
    cache = DataCache(str(tmp_path), 1000)
    for name, length in (("a", 600), ("b", 600), ("c", 300), ("d", 300)):
        cache.write(item(name, b"x" * length), b"x" * length)
    found = [cache.read(item(name, b"x" * length)) is not None for name, length in (("a", 600), ("b", 600), ("c", 300))]
    assert found == [True, False, True]


def test_what_an_earlier_run_left_makes_room(tmp_path):
    first = DataCache(str(tmp_path), 1000)
    for number in range(9):
        first.write(item(f"{number}"), b"x" * 100)
    age(tmp_path)
    second = DataCache(str(tmp_path), 1000)
    assert second.read(item("4"))
    for number in range(20, 24):
        second.write(item(f"{number}"), b"x" * 100)
    assert all(second.read(item(f"{number}")) for number in (4, 20, 21, 22, 23))
    assert size(tmp_path) <= 1000
    assert sum(second.read(item(f"{number}")) is not None for number in range(9)) < 6


@pytest.mark.parametrize("name", ["half.tmp", ".mox-half.part"])
def test_what_a_killed_process_left_is_removed(tmp_path, name):
    cache = DataCache(str(tmp_path), 1000)
    cache.write(item("a"), b"x" * 100)
    (path,) = tmp_path.glob("??/*.object")
    left = path.with_name(name)
    left.write_bytes(b"x" * 500)
    os.utime(left, (1, 1))
    (tmp_path / "used").write_text("garbage")
    again = DataCache(str(tmp_path), 1000)
    again.write(item("b"), b"x" * 100)
    assert not left.exists() and again.read(item("b"))
    assert int((tmp_path / "used").read_text()) == 208


def test_a_large_file_whose_fetch_was_killed_has_room(tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    killed = DataCache(str(tmp_path), 1000)
    monkeypatch.setattr(data_cache, "download", stop)
    monkeypatch.setattr(killed, "_remove", lambda *_: None)  # it clears nothing up
    with pytest.raises(KeyboardInterrupt):
        killed.fetch_file(item("a", bytes(600)))
    assert [path.stat().st_size for path in tmp_path.glob("??/*.tmp")] == [600]
    monkeypatch.setattr(data_cache, "download", lambda *_: None)
    assert DataCache(str(tmp_path), 1000).fetch_file(item("a", bytes(600))) is not None
    assert int((tmp_path / "used").read_text()) == 600


def test_a_disk_that_is_full_ends_the_caching_only(tmp_path, monkeypatch):
    cache = DataCache(str(tmp_path), 1000)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with warnings_logged() as lines:
        cache.write(item("a"), b"x" * 100)
        cache.write(item("b"), b"x" * 100)
    assert len(lines) == 1 and "(No space left on device); continuing without it" in lines[0]
    assert size(tmp_path) == 0


def test_several_processes_share_it(tmp_path):
    """Three processes fill one cache at once: it holds, in whole files, no more than it may."""
    code = f"""
import sys
from moxing.tensorflow.datasets.stored.data_cache import DataCache
from moxing.tensorflow.datasets.stored.objects import StoredObject
cache = DataCache({str(tmp_path)!r}, 60_000)
for number in range(400):
    number = (number * int(sys.argv[1])) % 401
    one = StoredObject(f"s3://b/{{number}}", 200 + number, "v")
    content = bytes([number % 256]) * (200 + number)
    found = cache.read(one)
    if found is None:
        cache.write(one, content)
    elif found != content:
        raise SystemExit("wrong content")
"""
    running = [WarmProcess(Program("code", code, (str(step),))) for step in (1, 7, 13)]
    assert [process.wait(240) for process in running] == [0, 0, 0]
    assert 50_000 < size(tmp_path) <= 60_000
    assert not list(tmp_path.glob("??/*.tmp"))


def test_one_of_several_processes_fetches_a_file(tmp_path, s3_folder, proxy):
    content = os.urandom(300_000)
    mox.file.write(s3_folder + "/a", content, binary=True)
    one = describe_object(s3_folder + "/a")
    proxy.requests.clear()
    with ThreadPoolExecutor(6) as pool:
        paths = list(pool.map(lambda _: DataCache(str(tmp_path), 10**6).fetch_file(one), range(6)))
    assert len(set(paths)) == 1 and Path(paths[0]).read_bytes() == content
    assert sum(method == "GET" for method, _ in proxy.requests) == 1


def test_a_fetch_that_was_cut_off_is_continued(tmp_path, s3_folder, proxy):
    content = os.urandom(20 << 20)
    mox.file.write(s3_folder + "/a", content, binary=True)
    one = describe_object(s3_folder + "/a")
    cache = DataCache(str(tmp_path), 10**8)
    # One part of three comes.
    requests = iter(range(100))
    proxy.fail("500", 10**6, lambda method, target: method == "GET" and next(requests) >= 1)
    with pytest.raises(mox.file.MoxFileReadException):
        cache.fetch_file(one)
    assert not list(tmp_path.glob("??/*.file"))
    proxy.fail("", 0)
    before = proxy.sent
    path = DataCache(str(tmp_path), 10**8).fetch_file(one)
    assert Path(path).read_bytes() == content
    assert proxy.sent - before <= 17 << 20
    assert [other.name for other in Path(path).parent.iterdir() if not other.name.endswith((".file", ".lock"))] == []


def test_a_file_that_changed_meanwhile(tmp_path, s3_folder):
    mox.file.write(s3_folder + "/a", "first")
    one = describe_object(s3_folder + "/a")
    mox.file.write(s3_folder + "/a", "other")
    with pytest.raises(UnusableObjectError, match="changed meanwhile"):
        DataCache(str(tmp_path), 1000).fetch_file(one)
    mox.file.remove(s3_folder + "/a")
    with pytest.raises(UnusableObjectError, match="no such object"):
        DataCache(str(tmp_path), 1000).fetch_file(one)
    assert not list(tmp_path.glob("??/*.file")) and int((tmp_path / "used").read_text()) == 0


def test_the_flags(tmp_path, monkeypatch):
    assert data_cache.data_cache() is None
    FLAGS.set("data_cache_dir", str(tmp_path / "named"))
    FLAGS.set("data_cache_gb", 0.5)
    assert data_cache.data_cache().directory == str(tmp_path / "named")
    assert data_cache.data_cache() is data_cache.file_cache()
    assert data_cache.data_cache()._limit == 500_000_000
    monkeypatch.setenv("DLS_LOCAL_CACHE_PATH", str(tmp_path / "platform"))
    FLAGS.set("data_cache_dir", "ENV")
    assert data_cache.data_cache().directory == str(tmp_path / "platform")
    for value in (0.0, math.inf, math.nan):
        FLAGS.set("data_cache_gb", value)
        with pytest.raises(FlagError, match=f"--data_cache_gb={value}: expected a positive number"):
            data_cache.data_cache()


def test_the_directory_of_the_flags_is_local(tmp_path, monkeypatch):
    FLAGS.set("data_cache_dir", f"file://{tmp_path}/url")
    assert data_cache.data_cache().directory == str(tmp_path / "url")
    FLAGS.set("data_cache_dir", "s3://bucket/cache")
    with pytest.raises(FlagError, match="--data_cache_dir='s3://bucket/cache': .* Only local paths"):
        data_cache.data_cache()
    FLAGS.set("data_cache_dir", "ENV")
    monkeypatch.setenv("DLS_LOCAL_CACHE_PATH", "s3://bucket/cache")
    with pytest.raises(FlagError, match="DLS_LOCAL_CACHE_PATH='s3://bucket/cache': .* Only local paths"):
        data_cache.data_cache()
    FLAGS.set("data_cache_dir", None)
    monkeypatch.setenv("DLS_LOCAL_CACHE_PATH", f"file://{tmp_path}/above")
    assert Path(data_cache.file_cache().directory).parent == tmp_path / "above"


def test_the_directory_of_a_killed_process_is_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("DLS_LOCAL_CACHE_PATH", str(tmp_path))
    code = (
        "import os, sys; from moxing.tensorflow.datasets.stored.data_cache import file_cache\n"
        "print(file_cache().directory, flush=True); sys.stdin.read(); os._exit(0)"
    )
    with WarmProcess(Program("code", code), stdin=PIPE, stdout=PIPE) as other:
        theirs = Path(other.stdout.readline().strip())
        data_cache._temporary_cache.cache_clear()
        own = Path(data_cache.file_cache().directory)
        assert theirs.is_dir() and theirs != own
        other.kill()
    data_cache._temporary_cache.cache_clear()
    third = Path(data_cache.file_cache().directory)
    assert not theirs.exists() and own.is_dir() and third.is_dir()
    data_cache._temporary_cache.cache_clear()


def test_a_temporary_cache_leaves_a_tenth_of_the_disk_free(monkeypatch):
    free, second = [900], []
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=2000, free=free[0]))
    monkeypatch.setattr(data_cache, "download", lambda one, target: Path(target).write_bytes(bytes(one.length)))
    cache = data_cache.file_cache()

    def fetch(name: str, length: int) -> bool:
        cache._full_until = 0.0  # a minute has passed
        return cache.fetch_file(item(name, bytes(length))) is not None

    assert fetch("a", 200)
    free[0] = 399  # other processes have such caches
    assert not fetch("b", 200) and fetch("c", 10)
    free[0] = 400
    # What is still to come counts.
    monkeypatch.setattr(data_cache, "download", lambda *_: second or second.append(fetch("d", 10)))
    assert fetch("b", 200) and second == [False]
    assert fetch("d", 10)


def test_threads_that_go_on_at_the_end_leave_no_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("DLS_LOCAL_CACHE_PATH", str(tmp_path))
    at_the_end, numbers, stop = [], itertools.count(), threading.Event()
    monkeypatch.setattr(atexit, "register", at_the_end.append)
    monkeypatch.setattr(data_cache, "download", lambda one, target: Path(target).write_bytes(bytes(one.length)))
    cache = data_cache.file_cache()

    def fetch() -> None:
        while not stop.wait(0.001):
            with suppress(OSError):
                cache.fetch_file(item(f"{next(numbers)}"))

    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(fetch) for _ in range(3)]
        while not list(tmp_path.rglob("*.file")):
            time.sleep(0.01)
        for act in reversed(at_the_end):
            act()
        time.sleep(0.1)
        stop.set()
    assert [thread.result() for thread in running] == [None] * 3
    assert list(tmp_path.rglob("*")) == []


def test_a_fetch_in_the_background_does_not_keep_the_process(tmp_path, s3_folder, proxy):
    mox.file.write(s3_folder + "/a", bytes(64 << 16), binary=True)
    code = """
import sys, threading
from moxing.framework.file import urls
from moxing.framework.file.s3 import part_file
part_file.PART_SIZE = 1 << 16
place, began = urls.find_remote(sys.argv[1], "url"), threading.Event()
mark = part_file.PartFile.mark_complete
part_file.PartFile.mark_complete = lambda self, number: (mark(self, number), number and began.set())
threading.Thread(target=place.backend.download, args=(place.path, sys.argv[2], None, 4), daemon=True).start()
began.wait()
"""
    proxy.requests.clear()
    proxy.rewrite = lambda target, body: (time.sleep(0.1), body)[1]
    command = [sys.executable, "-c", code, s3_folder + "/a", str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "a").exists() and len(proxy.requests) < 32, "the parts that were under way"

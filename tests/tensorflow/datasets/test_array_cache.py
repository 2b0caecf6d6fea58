"""The cache of arrays: what it gives back is right, whatever happened to its files, its sources or its process."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from helpers.warm import HERE, PIPE, Program, WarmProcess
from moxing.tensorflow.datasets.array_cache import ArrayCache, resolve_cache_dir


def array(number: int) -> np.ndarray:
    shape = (3 + number % 5, 4 + number % 7, 3)
    return np.random.default_rng(number).integers(0, 256, shape, np.uint8)


@pytest.fixture
def names(tmp_path) -> list[str]:
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(20):
        (folder / f"{number}.png").write_bytes(b"x" * number)
    return [str(folder / f"{number}.png") for number in range(20)]


@pytest.fixture
def filled(tmp_path, names) -> str:
    """The directory of a cache that an earlier process has left."""
    cache = ArrayCache(str(tmp_path / "cache"), names, "decoded", remove_on_finish=False)
    for number in range(20):
        cache.put(number, array(number))
    return cache.directory


def opened(tmp_path, names, form="decoded") -> ArrayCache:
    return ArrayCache(str(tmp_path / "cache"), names, form, remove_on_finish=False)


def right_ones(cache: ArrayCache) -> list[int]:
    """The numbers that it has; an array that is there must be the right one."""
    found = [number for number in range(20) if cache.get(number) is not None]
    for number in found:
        np.testing.assert_array_equal(cache.get(number), array(number))
    return found


def test_gives_back_what_was_put(tmp_path, names):
    cache = opened(tmp_path, names)
    assert right_ones(cache) == []
    for number in (3, 0, 19):
        cache.put(number, array(number))
    cache.put(3, array(4))
    assert right_ones(cache) == [0, 3, 19]


@pytest.mark.parametrize(
    "value", [np.zeros([0, 0, 3], np.uint8), np.arange(7, dtype=np.uint8), np.zeros([0], np.uint8)]
)
def test_shapes(tmp_path, names, value):
    cache = opened(tmp_path, names, "encoded")
    cache.put(2, value)
    cache.put(3, array(3))
    del cache
    cache = opened(tmp_path, names, "encoded")
    np.testing.assert_array_equal(cache.get(2), value)
    assert cache.get(2).shape == value.shape
    np.testing.assert_array_equal(cache.get(3), array(3))


def test_slices_are_put_as_they_look(tmp_path, names):
    cache = opened(tmp_path, names)
    cache.put(0, array(0)[::-1, ::2])
    np.testing.assert_array_equal(cache.get(0), array(0)[::-1, ::2])


def test_stays_for_the_next_process(tmp_path, names, filled):
    cache = opened(tmp_path, names)
    assert cache.directory == filled
    assert right_ones(cache) == list(range(20))


def test_a_changed_source_is_not_believed(tmp_path, names, filled):
    Path(names[5]).write_bytes(b"another size")
    os.utime(names[6], ns=(1, 1))
    os.remove(names[7])
    cache = opened(tmp_path, names)
    assert right_ones(cache) == [number for number in range(20) if number not in (5, 6, 7)]
    replaced = array(100)
    cache.put(5, replaced)
    np.testing.assert_array_equal(cache.get(5), replaced)
    del cache
    np.testing.assert_array_equal(opened(tmp_path, names).get(5), replaced)


@pytest.mark.parametrize("file", ["data", "index"])
@pytest.mark.parametrize("left", [0, 1, 55, 56, 57, 300, 1000])
def test_a_file_that_was_cut(tmp_path, names, filled, file, left):
    os.truncate(os.path.join(filled, file), left)
    cache = opened(tmp_path, names)
    there = right_ones(cache)
    assert len(there) < 20
    for number in range(20):
        cache.put(number, array(number))
    assert right_ones(cache) == list(range(20))
    del cache
    assert right_ones(opened(tmp_path, names)) == list(range(20))


@pytest.mark.parametrize("file", ["data", "index"])
def test_a_full_disk_ends_the_caching_only(tmp_path, names, filled, caplog, file):
    os.remove(os.path.join(filled, file))
    os.symlink("/dev/full", os.path.join(filled, file))
    cache = opened(tmp_path, names)
    for number in range(20):
        cache.put(number, array(number))
    assert right_ones(cache) == []
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "No space left" in caplog.text and filled in caplog.text


def test_other_samples_and_other_forms_have_other_files(tmp_path, names, filled):
    others = [opened(tmp_path, names[::-1]), opened(tmp_path, names[:19]), opened(tmp_path, names, "encoded")]
    assert len({filled, *(cache.directory for cache in others)}) == 4
    assert all(right_ones(cache) == [] for cache in others)


def test_two_caches_of_the_same_samples_at_once(tmp_path, names):
    caches = [opened(tmp_path, names) for _ in range(3)]
    for number in range(20):
        for shift, cache in enumerate(caches):
            cache.put((number + 7 * shift) % 20, array((number + 7 * shift) % 20))
    assert all(right_ones(cache) == list(range(20)) for cache in caches)
    kept = {cache.directory for cache in caches}
    assert len(kept) == 3
    del cache, caches
    gc.collect()
    again = [opened(tmp_path, names) for _ in range(2)]
    assert {cache.directory for cache in again} <= kept
    assert all(right_ones(cache) == list(range(20)) for cache in again)


def test_a_cache_that_is_gone_leaves_no_open_files(tmp_path, names):
    def own_files():
        links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        # One of them was that of listdir.
        return [
            path for link in links if os.path.lexists(link) for path in [os.readlink(link)] if str(tmp_path) in path
        ]

    kept = opened(tmp_path, names)
    assert own_files()
    del kept
    for _ in range(20):
        opened(tmp_path, names)
    gc.collect()
    assert own_files() == []


def test_many_threads(tmp_path, names):
    cache = opened(tmp_path, names)
    errors = []

    def work(seed):
        try:
            for number in np.random.default_rng(seed).integers(0, 20, 200):
                found = cache.get(int(number))
                if found is None:
                    cache.put(int(number), array(int(number)))
                else:
                    np.testing.assert_array_equal(found, array(int(number)))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert right_ones(cache) == list(range(20))


CHILD = """
import sys
import numpy as np
from moxing.tensorflow.datasets.array_cache import ArrayCache

directory, *names = sys.argv[1:]
ArrayCache(directory + "/removed", names, "decoded").put(0, np.ones([2, 2, 3], np.uint8))
cache = ArrayCache(directory + "/kept", names, "decoded", remove_on_finish=False)
for number in range(20):
    shape = (3 + number % 5, 4 + number % 7, 3)
    cache.put(number, np.random.default_rng(number).integers(0, 256, shape, np.uint8))
print("filled", flush=True)
sys.stdin.read()
"""


def test_removed_at_the_end_of_the_process_or_left_by_one_that_was_killed(tmp_path, names):
    children = []
    for name in ("ends", "killed"):
        (tmp_path / name).mkdir()
        program = Program("code", CHILD, (str(tmp_path / name), *map(str, names)))
        children.append(WarmProcess(program, HERE, PIPE, PIPE))
    for child in children:
        assert child.stdout.readline() == "filled\n"
    assert os.listdir(tmp_path / "ends" / "removed") and os.listdir(tmp_path / "killed" / "removed")
    children[1].kill()
    for child in children:
        child.communicate(timeout=60)
    assert os.listdir(tmp_path / "ends" / "removed") == []
    assert len(os.listdir(tmp_path / "killed" / "removed")) == 1
    for name in ("ends", "killed"):
        assert right_ones(ArrayCache(str(tmp_path / name / "kept"), names, "decoded", False)) == list(range(20))


def test_the_directory_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("DLS_LOCAL_CACHE_PATH", "/fast/disk")
    assert resolve_cache_dir("ENV") == "/fast/disk"
    assert resolve_cache_dir("ENVY") == "ENVY"
    assert resolve_cache_dir("file:///fast/disk") == "/fast/disk"
    with pytest.raises(ValueError, match="cache_dir='s3://bucket/cache'.*Only local paths"):
        resolve_cache_dir("s3://bucket/cache")
    for unset in (
        lambda: monkeypatch.setenv("DLS_LOCAL_CACHE_PATH", ""),
        lambda: monkeypatch.delenv("DLS_LOCAL_CACHE_PATH"),
    ):
        unset()
        with pytest.raises(ValueError, match="cache_dir='ENV'.*DLS_LOCAL_CACHE_PATH"):
            resolve_cache_dir("ENV")

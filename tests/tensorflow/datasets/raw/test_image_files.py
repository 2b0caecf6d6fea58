"""Image folders on a real store: the same samples as from the local copy, whatever is asked for."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from image_folders import JUNK, elements, session, write_folder, write_image
from record_writing import listed_bad_samples, run_seeing
from stored_data import fetched_keys, listings, same

import moxing as mox_file
import moxing.tensorflow as mox
from moxing.framework.file.entries import FileEntry
from moxing.framework.file.remote.object_store import ObjectStore
from moxing.framework.flags import FLAGS
from moxing.tensorflow.datasets.bad_samples import open_bad_sample_log

#: Every test starts without an index or a cache.
pytestmark = pytest.mark.usefixtures("machine")

COUNTS = {"cat": 40, "dog": 33, "elk": 27}
FEATURES = ("image", "label", "label_desc", "image_name")


@pytest.fixture
def folder(tmp_path) -> Path:
    root = tmp_path / "images"
    write_folder(root, COUNTS)
    (root / "cat" / "more").mkdir()
    write_image(root / "cat" / "more" / "über.png", 7)
    (root / "dog" / "notes.txt").write_text("no image")
    (root / ".hidden").mkdir()
    write_image(root / ".hidden" / "a.png", 8)
    (root / "labels.txt").write_text("0: elk\n1: cat\n2: dog\n")
    return root


def read(base_dir, *names, most=10**6, seed=5, data_class=mox.ImageClassificationRawDataset, shard=None, **options):
    """All elements of a dataset, or of the part of one worker."""
    with session() as opened:
        tf.set_random_seed(seed)
        metadata = base_dir if not isinstance(base_dir, str | Path) else mox.ImageClassificationRawMetadata(base_dir)
        dataset = data_class(metadata, **{"num_epochs": 1, **options})
        if shard is not None:
            start, workers, index = shard
            made = dataset._source.shard(workers, index).build(start)
            tensors = tf.data.make_one_shot_iterator(made).get_next()
            return elements(opened, [tensors[name] for name in names], most)
        return elements(opened, dataset.get(names or FEATURES), most)


def test_metadata_is_that_of_the_local_copy(folder, url, proxy):
    local, stored = mox.ImageClassificationRawMetadata(str(folder)), mox.ImageClassificationRawMetadata(url + "/")
    assert stored.base_dir == url
    assert [path.removeprefix(url) for path in stored.paths] == [p.removeprefix(str(folder)) for p in local.paths]
    np.testing.assert_array_equal(stored.labels, local.labels)
    assert stored.class_counts == local.class_counts == {"elk": 27, "cat": 41, "dog": 33}
    assert stored.labels_list == ["elk", "cat", "dog"]
    assert listings(proxy) == 1
    assert fetched_keys(proxy) == ["labels.txt"]


def test_slashes_of_joined_urls_and_keys_that_have_no_url(folder, url, monkeypatch):
    tree = ObjectStore.tree
    monkeypatch.setattr(ObjectStore, "tree", lambda *args: [*tree(*args), FileEntry("cat//twin.png", False, 1)])
    stored = mox.ImageClassificationRawMetadata(url + "//")
    assert stored.paths == mox.ImageClassificationRawMetadata(url).paths
    assert len(stored.paths) == 101


@pytest.mark.parametrize("shuffle", [True, False])
def test_samples_are_those_of_the_local_copy(folder, url, shuffle):
    options = {"shuffle": shuffle, "num_epochs": 2}
    assert same(read(folder, **options), read(url, **options))
    assert len(read(url, **options)) == 202


def test_obs_urls_lead_to_the_same_store(folder, url, monkeypatch):
    assert same(read(folder), read(url.replace("s3://", "obs://")))


@pytest.mark.slow
def test_augmented_batches_are_those_of_the_local_copy(folder, url):
    def batches(base_dir):
        augment = mox.get_data_augmentation_fn("resnet_v1_50", mox.ModeKeys.TRAIN, 16, 16)
        return read(base_dir, "image", "label", augmentation_fn=augment, batch_size=8)

    assert same(batches(folder), batches(url))


@pytest.mark.parametrize("requests", [1, 3, 100])
def test_the_number_of_requests_changes_nothing(folder, url, requests):
    FLAGS.set("data_requests", requests)
    assert same(read(folder), read(url))


@pytest.mark.slow
def test_readers_of_the_manual_work(folder, url):
    stored = read(url, reader_class=mox.AsyncRawGenerator, num_readers=40, reader_kwargs={"num_processes": 2})
    assert same(read(folder), stored)


@pytest.mark.slow
def test_two_workers_request_their_own_samples_only(folder, url, proxy):
    parts = []
    for index in range(2):
        before = len(fetched_keys(proxy, ".png"))
        parts.append(read(url, "image_name", "image", shard=(0, 2, index)))
        keys = fetched_keys(proxy, ".png")[before:]
        assert len(keys) == len(set(keys)) == len(parts[-1]) == (51, 50)[index]
    names = [name for part in parts for name, _ in part]
    assert len(set(names)) == 101
    assert same(parts[1], read(folder, "image_name", "image", shard=(0, 2, 1)))


@pytest.mark.slow
def test_a_start_in_the_middle_requests_nothing_before_it(folder, url, proxy):
    stored = read(url, "image_name", "label", shard=(70, 1, 0))
    assert len(fetched_keys(proxy, ".png")) == 31
    assert same(stored, read(folder, "image_name", "label", shard=(70, 1, 0)))


@pytest.mark.slow
def test_a_resumed_run_goes_on_as_the_local_one(folder, url, tmp_path):
    def train(base_dir, log_dir, steps):
        def input_fn(mode, **_):
            tf.set_random_seed(11)
            dataset = mox.ImageClassificationRawDataset(mox.ImageClassificationRawMetadata(base_dir))
            return dataset.get(["image_name", "label"])

        return run_seeing(input_fn, steps, batch_size=7, log_dir=str(tmp_path / log_dir), save_model_steps=5)[1]

    seen = {
        name: [train(base_dir, name, 10), train(base_dir, name, 25)]
        for name, base_dir in (("local", str(folder)), ("stored", url))
    }
    assert seen["local"] == seen["stored"]
    assert len(seen["stored"][1]) == 15


def test_many_requests_are_under_way(url, proxy):
    """Each answer waits until many have been asked for: with fewer at once the data would never come."""
    import threading

    waiting = threading.Barrier(16, timeout=30)

    def rewrite(target, body):
        if target.split("?")[0].endswith(".png") and not waiting.broken and len(passed) < 16:
            passed.append(target)
            waiting.wait()
        return body

    passed: list[str] = []
    proxy.rewrite = rewrite
    assert len(read(url)) == 101
    assert len(passed) == 16 and not waiting.broken


def test_a_folder_that_is_not_there(s3_folder):
    with pytest.raises(ValueError, match="base_dir='s3://tests/.*/none' does not exist: expected a directory"):
        mox.ImageClassificationRawMetadata(s3_folder + "/none")
    mox_file.file.write(s3_folder + "/file", "")
    with pytest.raises(ValueError, match="base_dir='s3://tests/.*/file' is a file: expected a directory"):
        mox.ImageClassificationRawMetadata(s3_folder + "/file")


def test_an_empty_class_folder_is_found(url):
    mox_file.file.make_dirs(url + "/fox")
    mox_file.file.remove(url + "/labels.txt")
    with pytest.raises(ValueError, match="no images in the class folders 'fox'"):
        mox.ImageClassificationRawMetadata(url)


@pytest.mark.slow
def test_a_copy_in_redirect_dir(folder, url, s3_folder):
    stored = mox.ImageClassificationRawMetadata(str(folder), redirect_dir=url)
    assert same(read(folder), read(stored))
    local = mox.ImageClassificationRawMetadata(url, redirect_dir=str(folder))
    assert local.objects is None and same(read(folder), read(local))
    with pytest.raises(ValueError, match="redirect_dir=.* is not a copy of base_dir"):
        mox.ImageClassificationRawMetadata(str(folder), redirect_dir=url + "/cat")


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_missing_and_broken_objects_are_bad_samples(folder, url, tmp_path, proxy):
    mox_file.file.write(url + "/cat/junk.png", JUNK, binary=True)
    mox_file.file.write(url + "/cat/nothing.png", b"", binary=True)
    metadata = mox.ImageClassificationRawMetadata(url)
    mox_file.file.remove(url + "/dog/050.png")
    proxy.fail("damage", 10**6, lambda method, target: method == "GET" and target.endswith("elk/080.png"))
    FLAGS.set("max_bad_samples", "4")
    with open_bad_sample_log(str(tmp_path / "log")):
        names = {name.decode() for (name,) in read(metadata, "image_name")}
    assert len(names) == 101 - 2 and not names & {"junk.png", "nothing.png", "050.png", "080.png"}
    reasons = {line["file"].removeprefix(url + "/"): line["reason"] for line in listed_bad_samples(tmp_path / "log")}
    assert reasons == {
        "cat/junk.png": "not an image: begins with b'this is no image'",
        "cat/nothing.png": "empty file",
        "dog/050.png": "cannot be read: there is no such object",
        "elk/080.png": "cannot be read: the content does not have the size or MD5 of the object",
    }


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["500", "503", "reset_body", "truncate"])
def test_passing_faults_change_nothing(folder, url, proxy, fault):
    metadata = mox.ImageClassificationRawMetadata(url)
    mox.file.set_auth(retry=5)  # the requests of many threads come in any order, and one image may meet all the faults
    proxy.fail(fault, 5, lambda method, target: target.endswith(".png") and next(counter) % 9 == 0)
    counter = iter(range(10**6))
    assert same(read(folder), read(metadata))
    assert proxy.unused == 0


def test_a_store_that_is_away_ends_the_run_with_its_error(url, proxy, tmp_path):
    metadata = mox.ImageClassificationRawMetadata(url)
    proxy.fail("500", 10**6, lambda method, target: target.endswith(".png"))

    def input_fn(mode, **_):
        return mox.ImageClassificationRawDataset(metadata).get(["label"])

    with pytest.raises(mox_file.file.MoxFileReadException, match="InternalError.*after 3 attempts"):
        run_seeing(input_fn, 10, log_dir=str(tmp_path / "log"))
    assert not (tmp_path / "log" / "bad_samples.jsonl").exists()


# --- the cache --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_was_read_once_is_not_fetched_again(folder, url, proxy, tmp_path):
    FLAGS.set("data_cache_dir", str(tmp_path / "cache"))
    first = read(url, num_epochs=3, shuffle=False)
    assert len(fetched_keys(proxy, ".png")) == 101 and len(first) == 303
    again = read(url, num_epochs=1)
    assert len(fetched_keys(proxy, ".png")) == 101
    assert same(again, read(folder))


@pytest.mark.slow
def test_a_changed_object_is_fetched_again(folder, url, proxy, tmp_path):
    FLAGS.set("data_cache_dir", str(tmp_path / "cache"))
    read(url)
    for path in (folder / "cat").glob("00*.png"):
        write_image(path, 1234)
        mox_file.file.copy(str(path), f"{url}/cat/{path.name}")
    assert same(read(folder), read(url))
    assert len(fetched_keys(proxy, ".png")) == 101 + 10


@pytest.mark.slow
def test_a_decoded_cache_spares_the_requests_too(folder, url, proxy, tmp_path):
    options = {"cache_dir": str(tmp_path / "decoded"), "remove_cache_on_finish": False}
    assert same(read(folder), read(url, **options))
    assert len(fetched_keys(proxy, ".png")) == 101
    gc.collect()  # a cache that is in use is not shared
    assert same(read(folder, num_epochs=3), read(url, num_epochs=3, **options))
    assert len(fetched_keys(proxy, ".png")) == 101


# --- several labels ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_several_labels(tmp_path, s3_folder, proxy):
    root = tmp_path / "many"
    for number in range(30):
        write_image(root / "images" / f"{number}.png", number)
        (root / "labels").mkdir(exist_ok=True)
        if number != 3:
            (root / "labels" / f"{number}.png.txt").write_text("\n".join(["red", "green", "blue"][: 1 + number % 3]))
    mox_file.file.copy_parallel(str(root), s3_folder)
    found = [
        read(
            mox.MultilabelClassificationRawMetadata(base_dir),
            data_class=mox.MultilabelClassificationRawDataset,
            skip_label_not_found=True,
        )
        for base_dir in (str(root), s3_folder)
    ]
    assert same(*found) and len(found[1]) == 29
    assert listings(proxy) <= 8

"""TFRecord files on a real store: the same records as from the local copy, fetched once, indexed once."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf
from record_writing import column, example, flip_byte, listed_bad_samples, noise, run_seeing, slim_example, write
from stored_data import fetched_keys, listings, same

import moxing as mox_file
import moxing.tensorflow as mox
from moxing.framework.flags import FLAGS
from moxing.tensorflow.datasets.bad_samples import open_bad_sample_log
from moxing.tensorflow.datasets.tfrecord import record_objects
from moxing.tensorflow.datasets.tfrecord.tfrecord_image import ImageClassificationTFRecordDataset
from moxing.tensorflow.datasets.tfrecord_common import BaseTFRecordDataset, BaseTFRecordMetadata
from moxing.tensorflow.datasets.tfrecord_image import ProgressiveImagenetDataset
from moxing.tf1.contrib import slim

#: Every test starts without an index or a cache.
pytestmark = pytest.mark.usefixtures("machine")

KEYS = {"id": tf.FixedLenFeature([], tf.int64), "text": tf.FixedLenFeature([], tf.string)}
COUNTS = (150, 90, 200, 60)


@pytest.fixture
def folder(tmp_path) -> Path:
    root, first = tmp_path / "records", 0
    for part, count in enumerate(COUNTS):
        records = [example({"id": first + n, "text": os.urandom(10 + 40 * (n % 7))}) for n in range(count)]
        write(root / f"part-{part}.tfrecord", records)
        first += count
    (root / "readme.txt").write_text("no records")
    return root


class Records(BaseTFRecordDataset):
    """The keys as they are."""


def read(base_dir, *names, seed=5, shard=None, start=0, pattern="*.tfrecord", **options):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(seed)
        metadata = BaseTFRecordMetadata(str(base_dir), pattern)
        options = {"num_epochs": 1, "shuffle_buffer_size": 100, **options}
        dataset = Records(metadata, feature_keys=list(KEYS), feature_values=list(KEYS.values()), **options)
        source = dataset._source if shard is None else dataset._source.shard(*shard)
        element = tf.data.make_one_shot_iterator(source.build(start)).get_next()
        found = []
        while True:
            try:
                found.append(session.run([element[name] for name in names or KEYS]))
            except tf.errors.OutOfRangeError:
                return found


@pytest.mark.parametrize("shuffle", [True, False])
def test_records_are_those_of_the_local_copy(folder, url, shuffle):
    stored = read(url, shuffle=shuffle, num_epochs=2)
    assert len(stored) == 1000 and same(read(folder, shuffle=shuffle, num_epochs=2), stored)


def test_two_workers_and_a_start_in_the_middle(folder, url):
    parts = [read(url, "id", shard=(2, index), start=100) for index in range(2)]
    assert parts == [read(folder, "id", shard=(2, index), start=100) for index in range(2)]
    assert len({int(number) for part in parts for (number,) in part}) == 300


@pytest.mark.slow
def test_files_are_fetched_once_and_the_index_is_kept(folder, url, proxy, tmp_path):
    FLAGS.set("data_cache_dir", str(tmp_path / "cache"))
    assert BaseTFRecordMetadata(url, "*.tfrecord").num_samples == 500
    assert sorted(fetched_keys(proxy, ".tfrecord")) == [f"part-{part}.tfrecord" for part in range(4)]
    assert listings(proxy) == 1
    stored = read(url, num_epochs=2)
    assert same(read(folder, num_epochs=2), stored)
    assert len(fetched_keys(proxy, ".tfrecord")) == 4


def test_on_another_machine_the_index_comes_from_the_store(folder, url, proxy, machine, monkeypatch):
    assert BaseTFRecordMetadata(url, "*.tfrecord").num_samples == 500
    proxy.requests.clear()
    machine(1)
    monkeypatch.setattr(record_objects, "scan", lambda *_: pytest.fail("scanned again"))
    assert BaseTFRecordMetadata(url, "*.tfrecord").num_samples == 500
    assert fetched_keys(proxy, ".tfrecord") == []
    assert same(read(folder), read(url))


def test_an_index_that_must_not_be_read_is_none(url, proxy, machine, monkeypatch):
    proxy.fail("refuse", 10**6, lambda method, target: ".moxing_index" in target)
    assert BaseTFRecordMetadata(url, "*.tfrecord").num_samples == 500
    assert len([target for _, target in proxy.requests if ".moxing_index" in target]) == 2, "read and written"
    proxy.fail("", 0)
    machine(1)
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    assert BaseTFRecordMetadata(url, "*.tfrecord").num_samples == 500
    machine(2)
    proxy.fail("500", 10**6, lambda method, target: ".moxing_index" in target)
    with pytest.raises(mox_file.file.MoxFileReadException, match="500"):
        _ = BaseTFRecordMetadata(url, "*.tfrecord").num_samples


def test_only_files_that_changed_are_indexed_again(folder, url, proxy, machine):
    assert BaseTFRecordMetadata(url, "*.tfrecord").num_samples == 500
    write(folder / "part-1.tfrecord", [example({"id": 7, "text": b"new"})] * 30)
    mox_file.file.copy(str(folder / "part-1.tfrecord"), url + "/part-1.tfrecord")
    proxy.requests.clear()
    machine(1)
    assert BaseTFRecordMetadata(url, "*.tfrecord").num_samples == 440
    assert fetched_keys(proxy, ".tfrecord") == ["part-1.tfrecord"]
    assert same(read(folder), read(url))


@pytest.mark.slow
@pytest.mark.parametrize("gigabytes", [2e-5, 1e-9])
def test_files_that_do_not_fit_are_read_in_parts(folder, url, proxy, tmp_path, gigabytes):
    """One file of about 20 kB fits, or none."""
    FLAGS.set("data_cache_dir", str(tmp_path / "cache"))
    FLAGS.set("data_cache_gb", gigabytes)
    assert same(read(folder), read(url))
    assert same(read(folder, shuffle=False), read(url, shuffle=False))
    kept = sum(path.stat().st_size for path in (tmp_path / "cache").glob("??/*"))
    assert kept <= gigabytes * 1e9


def test_neighbours_are_one_request(url, proxy, tmp_path):
    FLAGS.set("data_cache_dir", str(tmp_path / "cache"))
    FLAGS.set("data_cache_gb", 1e-9)
    assert BaseTFRecordMetadata(url, "*.tfrecord").num_samples == 500
    proxy.requests.clear()
    assert len(read(url, shuffle=False)) == 500
    assert len(fetched_keys(proxy, ".tfrecord")) < 30


@pytest.mark.slow
def test_a_damaged_copy_is_noticed(folder, url, proxy, tmp_path):
    FLAGS.set("data_cache_dir", str(tmp_path / "cache"))
    read(url)
    for path in (tmp_path / "cache").glob("??/*.file"):
        flip_byte(path, path.stat().st_size // 2)
    FLAGS.set("max_bad_samples", "0")
    assert same(read(folder), read(url))
    for _ in range(300):
        # The files are fetched again in the background.
        if len(list((tmp_path / "cache").glob("??/*.file"))) == 4:
            break
        time.sleep(0.05)
    path = next(iter((tmp_path / "cache").glob("??/*.file")))
    path.write_bytes(path.read_bytes()[:-5])
    assert same(read(folder), read(url))


def test_a_damaged_copy_does_not_spoil_the_index_of_all(url, machine, tmp_path):
    FLAGS.set("data_cache_dir", str(tmp_path / "cache"))
    assert BaseTFRecordMetadata(url, "*.tfrecord").num_samples == 500
    # The machine fails: a file that was not flushed has a hole, and the index was not kept yet.
    mox_file.file.remove(url + "/.moxing_index", recursive=True)
    for index in (tmp_path / "cache" / "index").iterdir():
        index.unlink()
    path = next((tmp_path / "cache").glob("??/*.file"))
    content = path.read_bytes()
    path.write_bytes(content[:2000] + bytes(1500) + content[3500:])
    machine(1)
    assert BaseTFRecordMetadata(url, "*.tfrecord").num_samples == 500
    assert path.read_bytes() == content
    machine(2)
    FLAGS.set("data_cache_dir", "")
    assert BaseTFRecordMetadata(url, "*.tfrecord").num_samples == 500


@pytest.mark.slow
def test_damaged_and_changed_records_are_bad_samples(folder, url, tmp_path):
    offsets = write(folder / "part-1.tfrecord", [example({"id": n, "text": b"x" * 50}) for n in range(90)])
    flip_byte(folder / "part-1.tfrecord", offsets[5] + 30)
    flip_byte(folder / "part-1.tfrecord", offsets[40] + 1)
    mox_file.file.copy(str(folder / "part-1.tfrecord"), url + "/part-1.tfrecord")
    FLAGS.set("max_bad_samples", "5")
    found = []
    for base_dir in (str(folder), url):
        with open_bad_sample_log(str(tmp_path / base_dir.replace("/", "_"))):
            found.append(read(base_dir))
    assert same(*found) and len(found[1]) == 498
    lines = [
        sorted(
            (line["file"].removeprefix(base), line["offset"], line["reason"])
            for line in listed_bad_samples(tmp_path / log)
        )
        for base, log in ((str(folder), str(folder).replace("/", "_")), (url, url.replace("/", "_")))
    ]
    assert lines[0] == lines[1] and len(lines[0]) == 2


def test_a_file_that_went_away_is_bad_samples(url, tmp_path):
    FLAGS.set("data_cache_gb", 1e-9)
    FLAGS.set("max_bad_samples", "100")
    metadata = BaseTFRecordMetadata(url, "*.tfrecord")
    assert metadata.num_samples == 500
    mox_file.file.remove(url + "/part-3.tfrecord")
    with open_bad_sample_log(str(tmp_path / "log")) as log, tf.Graph().as_default():
        dataset = Records(metadata, list(KEYS), list(KEYS.values()), num_epochs=1)
        assert len(column(dataset, "id")) == 440
    assert len(log.samples) == 60
    assert all("there is no such object" in sample.reason for sample in log.samples)


def test_a_store_that_is_away_ends_the_run_with_its_error(url, proxy, tmp_path):
    FLAGS.set("data_cache_gb", 1e-9)
    metadata = BaseTFRecordMetadata(url, "*.tfrecord")
    assert metadata.num_samples == 500
    proxy.fail("reset", 10**6)

    def input_fn(mode, **_):
        return Records(metadata, list(KEYS), list(KEYS.values())).get(["id"])

    with pytest.raises(mox_file.file.MoxFileReadException, match="after 3 attempts"):
        run_seeing(input_fn, 10, log_dir=str(tmp_path / "log"))
    assert not (tmp_path / "log" / "bad_samples.jsonl").exists()


@pytest.mark.slow
def test_a_resumed_run_goes_on_as_the_local_one(folder, url, tmp_path):
    def train(base_dir, log_dir, steps):
        def input_fn(mode, **_):
            tf.set_random_seed(11)
            metadata = BaseTFRecordMetadata(base_dir, "*.tfrecord")
            return Records(metadata, list(KEYS), list(KEYS.values())).get(["id"])

        return run_seeing(input_fn, steps, batch_size=9, log_dir=str(tmp_path / log_dir), save_model_steps=5)[1]

    local = [train(str(folder), "local", steps) for steps in (10, 70)]
    assert [train(url, "stored", steps) for steps in (10, 70)] == local


def test_patterns(url, s3_folder):
    mox_file.file.copy(url + "/part-0.tfrecord", url + "/deep/er/part-9.tfrecord")
    mox_file.file.copy(url + "/part-0.tfrecord", url + "/.hidden/part-8.tfrecord")

    def files(pattern):
        return [path.removeprefix(url + "/") for path in BaseTFRecordMetadata(url, pattern).files]

    assert files("part-[02]*") == ["part-0.tfrecord", "part-2.tfrecord"]
    assert files(["part-3*", "part-3.tf*"]) == ["part-3.tfrecord"]
    assert files("*/*/*.tfrecord") == ["deep/er/part-9.tfrecord"]
    assert files("**/*.tfrecord") == ["deep/er/part-9.tfrecord", *(f"part-{n}.tfrecord" for n in range(4))]
    with pytest.raises(ValueError, match=r"file_pattern='\*.rec': no file in base_dir=.* matches. It holds deep/"):
        files("*.rec")
    with pytest.raises(mox_file.file.MoxFileNotExistsException, match="base_dir: no such directory"):
        BaseTFRecordMetadata(url + "/none", "*")


def test_a_copy_in_redirect_dir(folder, url):
    stored = BaseTFRecordMetadata(str(folder), "*.tfrecord", redirect_dir=url)
    assert stored.files[0] == url + "/part-0.tfrecord" and stored.num_samples == 500
    local = BaseTFRecordMetadata(url, "*.tfrecord", redirect_dir=str(folder))
    assert local.files[0] == str(folder / "part-0.tfrecord") and local.num_samples == 500
    with pytest.raises(ValueError, match="redirect_dir=.*: 4 files are missing, .*part-0.tfrecord for one"):
        BaseTFRecordMetadata(str(folder), "*.tfrecord", redirect_dir=os.path.dirname(url) + "/")


def test_compressed_files_are_named(s3_folder, tmp_path):
    options = tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP)
    with tf.python_io.TFRecordWriter(str(tmp_path / "a"), options) as writer:
        writer.write(b"record")
    mox_file.file.copy(str(tmp_path / "a"), s3_folder + "/a")
    with pytest.raises(ValueError, match=f"{s3_folder}/a"):
        BaseTFRecordMetadata(s3_folder, "a").num_samples  # noqa: B018


# --- every class ------------------------------------------------------------------------------------------------------


@pytest.fixture
def images(tmp_path, s3_folder) -> tuple[str, str]:
    """Image records in the layout of TF-Slim, on the disk and on the store."""
    for part in range(2):
        records = [slim_example(noise(20 + n, 24, seed=n), n % 3, image_filename=b"%d.png" % n) for n in range(12)]
        write(tmp_path / "slim" / f"flowers_train_{part}", records)
    (tmp_path / "slim" / "labels.txt").write_text("0: a\n1: b\n2: c\n")
    mox_file.file.copy_parallel(str(tmp_path / "slim"), s3_folder)
    return str(tmp_path / "slim"), s3_folder


@pytest.mark.slow
def test_image_records(images):
    def samples(base_dir):
        metadata = mox.ImageClassificationTFRecordMetadata(base_dir, "flowers_train_*")
        assert metadata.num_classes == 3
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(3)
            augment = mox.get_data_augmentation_fn("resnet_v1_50", mox.ModeKeys.TRAIN, 16, 16)
            dataset = ImageClassificationTFRecordDataset(metadata, batch_size=4, augmentation_fn=augment)
            tensors = dataset.get(["image", "label", "label_desc", "image_name"])
            return [session.run(tensors) for _ in range(6)]

    assert same(*map(samples, images))


@pytest.mark.slow
def test_a_decoded_cache(images, tmp_path):
    def samples(base_dir, **options):
        metadata = mox.ImageClassificationTFRecordMetadata(base_dir, "flowers_train_*")
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            return column(ImageClassificationTFRecordDataset(metadata, num_epochs=3, **options), "image")

    assert samples(images[0]) == samples(images[1], cache_dir=str(tmp_path / "decoded"))


@pytest.mark.slow
def test_known_data_sets_and_decoders(images):
    def samples(base_dir):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(3)
            known = mox.get_dataset("flowers", "train", base_dir).get(["image", "label"])
            handlers = {"name": slim.tfexample_decoder.Tensor("image/filename")}
            keys = {"image/filename": tf.FixedLenFeature([], tf.string)}
            own = mox.get_tfrecord(base_dir, "flowers_*", keys, handlers).get(["name"])
            return [session.run([*known, *own]) for _ in range(8)]

    assert same(*map(samples, images))


@pytest.mark.slow
def test_growing_images(images):
    def samples(base_dir):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(3)
            stages = [(f"{base_dir}/flowers_train_*", 4, 16, 0.3), (f"{base_dir}/flowers_train_1", 2, 20, 0.3)]
            tensors = ProgressiveImagenetDataset(24, stages, [2]).get(["image", "label"])
            return [session.run(tensors) for _ in range(4)]

    assert same(*map(samples, images))

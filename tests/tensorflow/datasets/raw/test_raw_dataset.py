"""Data sets of image files: every argument does what it says."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from image_folders import JUNK, session, texts, write_folder, write_image
from PIL import Image
from raw_running import ALL, assert_equal_to_pillow, names_of, nearest, run
from tensorflow.core.framework import dataset_options_pb2

import moxing.tensorflow as mox
from moxing.framework.flags import FLAGS
from moxing.tensorflow.datasets.bad_samples import FILE_NAME, open_bad_sample_log
from moxing.tensorflow.datasets.class_names import open_class_names
from moxing.tensorflow.datasets.reader.readers import ParallelReader

# --- features ---------------------------------------------------------------------------------------------------------


def test_features(metadata, images):
    samples = run(metadata, "image", "label", "label_desc", "image_name")
    assert texts(name for *_, name in samples) == ALL
    assert [int(label) for _, label, *_ in samples] == [0] * 5 + [1] * 4 + [2] * 2
    assert texts(text for _, _, text, _ in samples) == ["cat"] * 5 + ["dog"] * 4 + ["elk"] * 2
    for image, label, _, name in samples:
        np.testing.assert_array_equal(image, images[name.decode()])
        assert (image.dtype, label.dtype) == (np.uint8, np.int64)


def test_static_shapes(metadata):
    with tf.Graph().as_default():
        image, label, name = mox.ImageClassificationRawDataset(metadata).get(["image", "label", "image_name"])
        assert image.shape.as_list() == [None, None, 3]
        assert label.shape.as_list() == name.shape.as_list() == []
        batched = mox.ImageClassificationRawDataset(metadata, 4, image_size=(6, 7), drop_remainder=True)
        assert batched.get(["image"])[0].shape.as_list() == [4, 6, 7, 3]


def test_jpegs_are_what_pillow_decodes(tmp_path):
    for number in range(3):
        smooth = np.linspace(0, 255, 40 * 50 * 3).reshape(40, 50, 3) + number
        (tmp_path / "a").mkdir(exist_ok=True)
        Image.fromarray(smooth.clip(0, 255).astype(np.uint8)).save(tmp_path / "a" / f"{number}.jpg", quality=95)
    metadata = mox.ImageClassificationRawMetadata(str(tmp_path))
    for image, name in run(metadata, "image", "image_name"):
        assert_equal_to_pillow(image, tmp_path / "a" / name.decode())


def test_names_of_files_and_classes_may_be_anything(tmp_path):
    root = os.fsencode(tmp_path)
    for name in (b"\xff class", "雏菊".encode()):
        os.mkdir(os.path.join(root, name))
    paths = [b"\xff class/\xff\xfe.png", b"\xff class/a\nb.png", "雏菊/ü %s.png".encode()]
    for number, path in enumerate(paths):
        write_image(tmp_path / "image.png", number)
        os.rename(tmp_path / "image.png", os.path.join(root, path))
    metadata = mox.ImageClassificationRawMetadata(str(tmp_path))
    for reader in (None, mox.AsyncRawGenerator):
        found = {(text, name) for text, name in run(metadata, "label_desc", "image_name", reader_class=reader)}
        assert found == {tuple(path.split(b"/")) for path in paths}


# --- order and epochs -------------------------------------------------------------------------------------------------


def test_epochs(metadata):
    assert names_of(metadata, num_epochs=3) == ALL * 3
    assert names_of(metadata, num_epochs=None, most=40) == (ALL * 4)[:40]


@pytest.mark.slow
def test_shuffled_epochs(metadata):
    names = names_of(metadata, num_epochs=3, shuffle=True, seed=1)
    epochs = [names[:11], names[11:22], names[22:]]
    assert [sorted(epoch) for epoch in epochs] == [ALL] * 3
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert names == names_of(metadata, num_epochs=3, shuffle=True, seed=1, num_readers=1, preprocess_threads=1)
    assert names != names_of(metadata, num_epochs=3, shuffle=True, seed=2)
    assert names != names_of(metadata, num_epochs=3, shuffle=True)


def test_batches_cross_epochs(metadata):
    batches = run(metadata, "image_name", "label", num_epochs=2, batch_size=4, image_size=5)
    assert [len(names) for names, _ in batches] == [4, 4, 4, 4, 4, 2]
    assert texts(np.concatenate([names for names, _ in batches])) == ALL * 2


def test_drop_remainder(metadata):
    batches = run(metadata, "image_name", num_epochs=2, batch_size=4, image_size=5, drop_remainder=True)
    assert [len(names) for (names,) in batches] == [4] * 5


# --- images -----------------------------------------------------------------------------------------------------------


def test_label_one_hot(metadata):
    for label, text in run(metadata, "label", "label_desc", label_one_hot=True):
        assert label.dtype == np.float32
        assert label.tolist() == [float(text == name) for name in (b"cat", b"dog", b"elk")]


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"reader_class": ParallelReader},
        {"reader_class": mox.AsyncRawGenerator, "reader_kwargs": {"num_processes": 1}},
        {"private_num_threads": 1},
        {"capacity": 1, "num_readers": 1, "preprocess_threads": 1},
        {"shuffle_buffer_size": 1},
        {"capacity": 5000, "num_readers": 64, "preprocess_threads": 64},
    ],
    ids=str,
)
def test_how_it_is_read_changes_nothing(metadata, images, options):
    samples = run(metadata, "image", "image_name", **options)
    assert texts(name for _, name in samples) == ALL
    for image, name in samples:
        np.testing.assert_array_equal(image, images[name.decode()])


def test_capacity_bounds_what_is_read_ahead(tmp_path):
    write_folder(tmp_path, {"a": 400}, size=(1, 1))
    metadata = mox.ImageClassificationRawMetadata(str(tmp_path))
    asked = []

    class Counting(ParallelReader):
        def fetch(self, paths):
            asked.extend(paths)
            return super().fetch(paths)

    run(metadata, "image", most=5, capacity=8, preprocess_threads=2, num_readers=2, reader_class=Counting)
    assert 5 <= len(asked) <= 256


@pytest.mark.parametrize(("given", "made"), [(3, [3]), (0, [])])
def test_private_threads_are_made(metadata, given, made):
    with tf.Graph().as_default() as graph:
        mox.ImageClassificationRawDataset(metadata, private_num_threads=given)._source.build()
        options = [op.get_attr("serialized_options") for op in graph.get_operations() if op.type == "OptionsDataset"]
    parsed = [dataset_options_pb2.Options.FromString(one).threading_options for one in options]
    assert [threads.private_threadpool_size for threads in parsed] == made


# --- cache ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_cache_is_used_and_believed(tmp_path, monkeypatch):
    folder, cache = tmp_path / "images", tmp_path / "cache"
    images = write_folder(folder, {"a": 6})
    metadata = mox.ImageClassificationRawMetadata(str(folder))
    monkeypatch.setenv("DLS_LOCAL_CACHE_PATH", str(cache))
    asked = []

    class Counting(ParallelReader):
        def read(self, fetched):
            def count(path):
                asked.append(path)
                return path

            return super().read(tf.numpy_function(count, [fetched], tf.string))

    # One at a time: else an image may be wanted again before it is in the cache.
    options = {"cache_dir": "ENV", "remove_cache_on_finish": False, "reader_class": Counting, "preprocess_threads": 1}
    for epochs in (3, 1):
        samples = run(metadata, "image", "image_name", num_epochs=epochs, **options)
        assert len(samples) == 6 * epochs
        for image, name in samples:
            np.testing.assert_array_equal(image, images[name.decode()])
        assert len(asked) == 6  # the second run reads nothing
        gc.collect()
    images["000.png"] = write_image(folder / "a" / "000.png", 99, 9, 9)
    resized = run(metadata, "image", "image_name", image_size=7, **options)
    assert len(asked) == 7
    for image, name in resized:
        np.testing.assert_array_equal(image, nearest(images[name.decode()], 7, 7))


def test_an_unset_cache_variable(metadata, monkeypatch):
    monkeypatch.delenv("DLS_LOCAL_CACHE_PATH", raising=False)
    with pytest.raises(ValueError, match="cache_dir='ENV'.*DLS_LOCAL_CACHE_PATH"):
        run(metadata, "image", cache_dir="ENV")


# --- wrong arguments --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch_size", 0),
        ("batch_size", "32"),
        ("num_readers", 0),
        ("num_epochs", 0),
        ("num_epochs", 1.5),
        ("capacity", 0),
        ("preprocess_threads", 0),
        ("shuffle_buffer_size", -1),
        ("private_num_threads", -1),
        ("image_size", (3,)),
        ("image_size", 2.5),
        ("preprocess_fn", 5),
        ("augmentation_fn", "vgg"),
        ("reader_class", "AsyncRawGenerator"),
    ],
)
def test_a_wrong_argument_is_named_with_its_value(metadata, name, value):
    options = {"image_size": 4, name: value}
    for data_class in (mox.ImageClassificationRawDataset,):
        with tf.Graph().as_default(), pytest.raises(ValueError) as error:
            data_class(metadata, **options)
        assert f"{name}={value!r}" in str(error.value)


def test_a_wrong_metadata():
    for data_class in (mox.ImageClassificationRawDataset, mox.MultilabelClassificationRawDataset):
        with pytest.raises(ValueError, match="metadata='/data': expected an? .*RawMetadata"):
            data_class("/data")


def test_a_batch_needs_one_size(metadata):
    with pytest.raises(ValueError, match="batch_size=8.*image_size"):
        run(metadata, "image", batch_size=8)


# --- bad files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["threads", "processes", "cache", "batches", "preprocess_fn"])
def test_bad_files_are_left_out_and_listed(tmp_path, way):
    FLAGS.set("max_bad_samples", "3")
    folder = tmp_path / "images"
    write_folder(folder, {"a": 8})
    metadata = mox.ImageClassificationRawMetadata(str(folder))
    (folder / "a" / "000.png").write_bytes(JUNK)
    (folder / "a" / "004.png").unlink()
    whole = (folder / "a" / "007.png").read_bytes()
    (folder / "a" / "007.png").write_bytes(whole[: len(whole) // 2])
    options = {
        "threads": {},
        "processes": {"reader_class": mox.AsyncRawGenerator, "reader_kwargs": {"num_processes": 1}},
        "cache": {"cache_dir": str(tmp_path / "cache")},
        "batches": {"batch_size": 1, "image_size": 3},
        "preprocess_fn": {"preprocess_fn": lambda name, image, *rest: (name, tf.io.decode_png(image), *rest)},
    }[way]
    with open_bad_sample_log(str(tmp_path / "log")) as bad_samples:
        samples = run(metadata, "image_name", num_epochs=2, **options)
    names = [np.ravel(name)[0].decode() for (name,) in samples]
    assert names == [f"{number:03d}.png" for number in (1, 2, 3, 5, 6)] * 2
    reasons = {os.path.basename(sample.file): sample.reason for sample in bad_samples.samples}
    assert sorted(reasons) == ["000.png", "004.png", "007.png"]
    assert "not an image" in reasons["000.png"]
    assert "No such file" in reasons["004.png"]
    assert "truncated" in reasons["007.png"]
    assert len((tmp_path / "log" / FILE_NAME).read_text().splitlines()) == 3


def test_a_missing_file_never_reaches_preprocess_fn(tmp_path):
    FLAGS.set("max_bad_samples", "1")
    write_folder(tmp_path, {"a": 4})
    metadata = mox.ImageClassificationRawMetadata(str(tmp_path))
    (tmp_path / "a" / "002.png").unlink()
    for reader in (ParallelReader, mox.AsyncRawGenerator):
        lengths = run(
            metadata,
            "image",
            batch_size=2,
            reader_class=reader,
            preprocess_fn=lambda name, image, *rest: (name, tf.strings.length(image), *rest),
        )
        assert [len(batch) for (batch,) in lengths] == [2, 1]
        assert all(np.all(batch > 0) for (batch,) in lengths)


@pytest.mark.timeout(120)
def test_a_folder_without_one_good_image_is_an_error(tmp_path):
    (tmp_path / "a").mkdir()
    for number in range(4):
        (tmp_path / "a" / f"{number}.jpg").write_bytes(b"\0\0\0\x18ftypheic" + bytes(20))
    metadata = mox.ImageClassificationRawMetadata(str(tmp_path))
    with pytest.raises(tf.errors.OpError, match="HEIC"):
        run(metadata, "image", num_epochs=None)


@pytest.mark.timeout(120)
def test_a_preprocess_fn_that_always_fails_is_an_error(metadata):
    def fails(name, image, *rest):
        with tf.control_dependencies([tf.debugging.Assert(tf.equal(name, "none"), ["boo"])]):
            return name, tf.identity(image), *rest

    with pytest.raises(tf.errors.OpError, match="000.png"):
        run(metadata, "image", num_epochs=None, preprocess_fn=fails)


def test_class_names_reach_the_run(metadata):
    with open_class_names() as classes, tf.Graph().as_default():
        mox.ImageClassificationRawDataset(metadata)
    assert classes.names == {0: "cat", 1: "dog", 2: "elk"}


# --- several labels ---------------------------------------------------------------------------------------------------


# --- real data and long runs ------------------------------------------------------------------------------------------


@pytest.mark.realdata
def test_real_photos(real_data):
    metadata = mox.ImageClassificationRawMetadata(str(real_data / "flowers"))
    samples = run(metadata, "image", "label_desc", "image_name", shuffle=True, seed=1, most=6)
    for image, text, name in samples:
        assert_equal_to_pillow(image, real_data / "flowers" / text.decode() / name.decode())


def resident_megabytes() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS")


def test_memory_stays_flat(tmp_path):
    write_folder(tmp_path, {"a": 64}, size=(100, 100))  # 2 MB decoded: a leak of one epoch in two would show
    metadata = mox.ImageClassificationRawMetadata(str(tmp_path))
    with session() as opened:
        (image,) = mox.ImageClassificationRawDataset(metadata, batch_size=64, image_size=100).get(["image"])
        for _ in range(10):
            opened.run(image.op)
        before = resident_megabytes()
        for _ in range(60):
            opened.run(image.op)
        assert resident_megabytes() - before < 50

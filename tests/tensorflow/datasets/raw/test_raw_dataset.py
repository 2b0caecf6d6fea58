"""Data sets of image files: every argument does what it says."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from image_folders import JUNK, elements, session, texts, write_folder, write_image
from PIL import Image
from tensorflow.core.framework import dataset_options_pb2

import moxing.tensorflow as mox
from moxing.framework.flags import FLAGS
from moxing.tensorflow.datasets.journal import FILE_NAME, open_journal
from moxing.tensorflow.datasets.reader.readers import ParallelReader

COUNTS = {"cat": 5, "dog": 4, "elk": 2}
ALL = [f"{number:03d}.png" for number in range(11)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("images")
    write_folder(root, COUNTS)
    return root


@pytest.fixture(scope="module")
def images() -> dict[str, np.ndarray]:
    return {
        f"{number:03d}.png": np.random.default_rng(number).integers(
            0, 256, (5 + number % 4, 6 + number % 3, 3), np.uint8
        )
        for number in range(11)
    }


@pytest.fixture(scope="module")
def metadata(folder):
    return mox.ImageClassificationRawMetadata(str(folder))


def run(metadata, *names, most=10**6, seed=None, data_class=mox.ImageClassificationRawDataset, **options):
    """Features of all elements; one epoch in the order of the files, unless `options` say otherwise."""
    options = {"shuffle": False, "num_epochs": 1, **options}
    with session() as opened:
        if seed is not None:
            tf.set_random_seed(seed)
        return elements(opened, data_class(metadata, **options).get(names), most)


def names_of(metadata, **options) -> list[str]:
    return texts(name for (name,) in run(metadata, "image_name", **options))


def nearest(image: np.ndarray, height: int, width: int) -> np.ndarray:
    return image[np.arange(height) * image.shape[0] // height][:, np.arange(width) * image.shape[1] // width]


def assert_equal_to_pillow(image: np.ndarray, path: Path) -> None:
    """JPEGs too: the decoder and its transform are the same."""
    difference = np.abs(image - np.asarray(Image.open(path).convert("RGB"), np.int64))
    assert difference.max() == 0


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


@pytest.mark.parametrize("image_size", [4, (9, 3)])
def test_image_size(metadata, images, image_size):
    height, width = (4, 4) if image_size == 4 else image_size
    for image, name in run(metadata, "image", "image_name", image_size=image_size):
        np.testing.assert_array_equal(image, nearest(images[name.decode()], height, width))


def decode(image_name, image_buf, label, label_desc):
    return image_name + "!", tf.io.decode_png(image_buf, channels=3), label + 100, "a " + label_desc


@pytest.mark.parametrize("cached", [False, True])
def test_preprocess_fn(metadata, images, tmp_path, cached):
    options = {"cache_dir": str(tmp_path)} if cached else {}
    samples = run(metadata, "image_name", "image", "label", "label_desc", preprocess_fn=decode, num_epochs=2, **options)
    assert len(samples) == 22
    for name, image, label, text in samples:
        np.testing.assert_array_equal(image, images[name.decode().rstrip("!")])
        assert label >= 100 and text.startswith(b"a ")


def test_preprocess_fn_of_batches(metadata, images):
    def decode_batch(image_name, image_buf, label, label_desc):
        assert image_buf.shape.as_list() == image_name.shape.as_list() == [None]
        image = tf.map_fn(lambda one: tf.io.decode_png(one, 3)[:5, :6], image_buf, tf.uint8)
        return image_name, tf.ensure_shape(image, [None, 5, 6, 3]), label, label_desc

    batches = run(metadata, "image_name", "image", batch_size=4, preprocess_fn=decode_batch)
    assert [len(names) for names, _ in batches] == [4, 4, 3]
    for names, batch in batches:
        for name, image in zip(texts(names), batch, strict=True):
            np.testing.assert_array_equal(image, images[name][:5, :6])


def test_an_augmentation_of_the_users_own(metadata, images):
    def augment(image):
        return tf.cast(image[:5, :6], tf.float32) / 2

    for batch, names in run(metadata, "image", "image_name", batch_size=5, augmentation_fn=augment):
        for image, name in zip(batch, texts(names), strict=True):
            np.testing.assert_array_equal(image, images[name][:5, :6] / np.float32(2))


def test_our_augmentation_is_repeated_exactly_under_a_seed(metadata, tmp_path):
    augment = mox.get_data_augmentation_fn("cifarnet", mox.ModeKeys.TRAIN, 8, 8)
    ways = [
        {},
        {"preprocess_threads": 1, "num_readers": 1, "private_num_threads": 2},
        {"batch_size": 4},
        {"cache_dir": str(tmp_path)},
        {"reader_class": mox.AsyncRawGenerator, "reader_kwargs": {"num_processes": 2}},
    ]
    results = []
    for way in ways:
        given = run(metadata, "image", "image_name", augmentation_fn=augment, shuffle=True, num_epochs=2, seed=3, **way)
        pick = np.concatenate if "batch_size" in way else np.stack
        results.append([pick([element[place] for element in given]) for place in (0, 1)])
    for pixels, names in results[1:]:
        assert names.tolist() == results[0][1].tolist()
        np.testing.assert_array_equal(pixels, results[0][0])
    # The second epoch is augmented in another way.
    first, second = (dict(zip(results[0][1][part].tolist(), results[0][0][part], strict=True)) for part in HALVES)
    assert any(not np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.filterwarnings("ignore:Seed 3 from outer graph")
@pytest.mark.parametrize("nested", [False, True])
def test_random_numbers_of_the_users_own_are_repeated_exactly_under_a_seed(metadata, nested):
    def augment(image):
        if not nested:
            return tf.random_uniform([])
        return tf.cond(tf.shape(image)[0] > 0, lambda: tf.random_uniform([]), lambda: 0.0)

    one, other = (
        run(metadata, "image", "image_name", augmentation_fn=augment, shuffle=True, num_epochs=15, seed=3)
        for _ in range(2)
    )
    assert one == other
    assert len({float(image) for image, _ in one}) > 150
    assert one != run(metadata, "image", "image_name", augmentation_fn=augment, shuffle=True, num_epochs=15)


HALVES = (slice(0, 11), slice(11, 22))


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
    with open_journal(str(tmp_path / "log")) as journal:
        samples = run(metadata, "image_name", num_epochs=2, **options)
    names = [np.ravel(name)[0].decode() for (name,) in samples]
    assert names == [f"{number:03d}.png" for number in (1, 2, 3, 5, 6)] * 2
    reasons = {os.path.basename(sample.file): sample.reason for sample in journal.bad}
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


def test_class_names_reach_the_journal(metadata):
    with open_journal(None) as journal, tf.Graph().as_default():
        mox.ImageClassificationRawDataset(metadata)
    assert journal.labels == {0: "cat", 1: "dog", 2: "elk"}


# --- several labels ---------------------------------------------------------------------------------------------------


def write_multilabel(root: Path, labels: dict[str, str | None], listed: str | None = None) -> Path:
    (root / "labels").mkdir(parents=True)
    for number, (name, text) in enumerate(labels.items()):
        write_image(root / "images" / name, number)
        if text is not None:
            (root / "labels" / f"{name}.txt").write_text(text)
    if listed is not None:
        (root / "labels.txt").write_text(listed)
    return root


def run_multilabel(root: Path, *names, **options):
    metadata = mox.MultilabelClassificationRawMetadata(str(root))
    return run(metadata, *names, data_class=mox.MultilabelClassificationRawDataset, **options)


@pytest.mark.parametrize("label_sep", ["\n", " ", ", ", "|"])
def test_label_vectors(tmp_path, label_sep):
    sets = {"0.png": ["cat", "elk"], "1.png": ["dog"], "2.png": [], "3.png": ["elk", "dog", "cat"]}
    texts_of = {name: label_sep.join(labels) for name, labels in sets.items()}
    root = write_multilabel(tmp_path / "data", texts_of, "0: cat\n1: dog\n2: elk\n")
    samples = run_multilabel(root, "image_name", "label", "label_desc", "image", label_sep=label_sep)
    assert len(samples) == 4
    for name, label, text, image in samples:
        wanted = sets[name.decode()]
        assert label.dtype == np.float32
        assert label.tolist() == [float(one in wanted) for one in ("cat", "dog", "elk")]
        assert text.decode() == label_sep.join(wanted)
        assert image.shape == (6, 8, 3)


def test_images_without_a_label_file(tmp_path):
    root = write_multilabel(tmp_path / "data", {"0.png": "cat", "1.png": None, "2.png": "dog", "3.png": None})
    with pytest.raises(ValueError, match="(?s)2 images have no label file.*1.png.*skip_label_not_found=True"):
        run_multilabel(root, "image")
    samples = run_multilabel(root, "image_name", "label", skip_label_not_found=True, num_epochs=2)
    assert texts(name for name, _ in samples) == ["0.png", "2.png"] * 2
    assert [label.tolist() for _, label in samples] == [[1, 0], [0, 1]] * 2


def test_unknown_label_names_and_separators(tmp_path):
    root = write_multilabel(tmp_path / "data", {"0.png": "cat dog", "1.png": "cat"}, "0: cat\n1: dog\n")
    with pytest.raises(ValueError, match=r"(?s)0.png.txt.*'cat dog' is not one of the 2 classes.*label_sep='\\n'.*' '"):
        run_multilabel(root, "label")
    for wrong in ("", None):
        with pytest.raises(ValueError, match=f"label_sep={wrong!r}"):
            run_multilabel(root, "label", label_sep=wrong)


def test_batches_of_several_labels(tmp_path):
    root = write_multilabel(tmp_path / "data", {f"{number}.png": "a\nb" for number in range(5)})
    batches = run_multilabel(root, "label", "image", batch_size=2, image_size=4)
    assert [(label.shape, image.shape) for label, image in batches] == [
        ((2, 2), (2, 4, 4, 3)), ((2, 2), (2, 4, 4, 3)), ((1, 2), (1, 4, 4, 3)),
    ]  # fmt: skip


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

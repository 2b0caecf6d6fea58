"""Well-known datasets by name, on small files in TF-Slim's layout."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from record_writing import column, noise, rows, run_seeing, slim_example, write

import moxing.tensorflow as mox

#: Name: the files of the two splits, the shape of its images if they have one, and their format.
LAYOUTS = {
    "mnist": (["mnist_train.tfrecord"], ["mnist_test.tfrecord"], (28, 28, 1), "png"),
    "cifar10": (["cifar10_train.tfrecord"], ["cifar10_test.tfrecord"], (32, 32, 3), "png"),
    "flowers": (
        [f"flowers_train_0000{i}-of-00005.tfrecord" for i in range(5)],
        [f"flowers_validation_0000{i}-of-00005.tfrecord" for i in range(5)],
        None,
        "jpg",
    ),
    "imagenet": (
        [f"train-0000{i}-of-00003" for i in range(3)],
        [f"validation-0000{i}-of-00002" for i in range(2)],
        None,
        "jpg",
    ),
}
EVAL_NAMES = {"mnist": "test", "cifar10": "test", "flowers": "validation", "imagenet": "validation"}
PER_FILE = 20


def image_of(name, number):
    shape = LAYOUTS[name][2] or (30 + number % 4, 40, 3)
    return noise(*shape, seed=number)


def write_data_set(directory, name):
    """Labels 0, 1, ... in `train` and 1000, 1001, ... in `eval`, in the order of the files."""
    train, evaluation, _, kind = LAYOUTS[name]
    for first, files in ((0, train), (1000, evaluation)):
        for part, file in enumerate(files):
            start = first + part * PER_FILE
            numbers = range(start, start + PER_FILE)
            write(directory / file, [slim_example(image_of(name, number), number, kind) for number in numbers])
    (directory / "labels.txt").write_text("0:zero\n1:one\n")
    return len(train) * PER_FILE, len(evaluation) * PER_FILE


@pytest.mark.parametrize("name", LAYOUTS)
class TestEachDataSet:
    def test_train_is_shuffled_and_has_no_end(self, tmp_path, name):
        count, _ = write_data_set(tmp_path, name)
        with tf.Graph().as_default():
            labels = column(mox.get_dataset(name, "train", str(tmp_path)), "label", limit=2 * count)
        assert sorted(labels[:count]) == sorted(labels[count:]) == list(range(count))
        assert list(range(count)) != labels[:count] != labels[count:]

    def test_eval_keeps_its_order(self, tmp_path, name):
        _, count = write_data_set(tmp_path, name)
        for split in ("eval", EVAL_NAMES[name]):
            with tf.Graph().as_default():
                labels = column(mox.get_dataset(name, split, str(tmp_path), capacity=3), "label", limit=2 * count)
            assert labels == 2 * list(range(1000, 1000 + count))

    def test_images(self, tmp_path, name):
        write_data_set(tmp_path, name)
        shape = LAYOUTS[name][2]
        with tf.Graph().as_default():
            dataset = mox.get_dataset(name=name, split_name="eval", dataset_dir=str(tmp_path), capacity=64)
            image, label = dataset.get(["image", "label"])
            assert image.dtype == tf.uint8 and image.shape.as_list() == list(shape or (None, None, 3))
            assert label.dtype == tf.int64 and label.shape.as_list() == []
            got = rows(dataset, ["image", "label"], limit=5)
        for image, label in got:
            kept = image_of(name, int(label))
            assert image.shape == kept.shape
            if LAYOUTS[name][3] == "png":
                assert (image == kept).all()

    def test_unknown_splits(self, tmp_path, name):
        with tf.Graph().as_default():
            for split in ("validate", "", None, "test" if EVAL_NAMES[name] == "validation" else "validation"):
                with pytest.raises(ValueError, match=f"split_name={split!r}: {name} has the splits 'train' and 'eval'"):
                    mox.get_dataset(name, split, str(tmp_path))


@pytest.mark.parametrize(
    ("name", "train", "evaluation", "classes"),
    [
        ("mnist", 60000, 10000, 10),
        ("cifar10", 50000, 10000, 10),
        ("flowers", 3320, 350, 5),
        ("imagenet", 1281167, 50000, 1001),
    ],
)
def test_meta(name, train, evaluation, classes):
    meta = mox.get_dataset_meta(name)
    assert list(meta.splits_to_sizes.items()) == [("train", train), ("eval", evaluation)]
    assert meta.num_classes == classes


@pytest.mark.parametrize(("name", "hint"), [("minst", "'mnist'"), ("image_net", "'imagenet'"), ("coco", "")])
def test_unknown_names(tmp_path, name, hint):
    for call in (lambda: mox.get_dataset_meta(name), lambda: mox.get_dataset(name, "train", str(tmp_path))):
        with pytest.raises(
            ValueError, match=f"name='{name}': expected one of mnist, cifar10, flowers, imagenet"
        ) as error:
            call()
        assert hint in str(error.value) and ("Did you mean" in str(error.value)) == bool(hint)


def test_other_wrong_arguments(tmp_path):
    write(tmp_path / "other.tfrecord", [b"x"])
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match=r"mnist_train.*other\.tfrecord"):
            mox.get_dataset("mnist", "train", str(tmp_path))
        with pytest.raises(FileNotFoundError, match="no/where"):
            mox.get_dataset("mnist", "train", "no/where")
        with pytest.raises(ValueError, match="capacity=0"):
            mox.get_dataset("mnist", "train", str(tmp_path), capacity=0)


def test_in_a_run(tmp_path):
    """As the manual uses it: the split follows the mode, the size comes from the metadata."""
    write_data_set(tmp_path / "data", "mnist")
    split = next(iter(mox.get_dataset_meta("mnist").splits_to_sizes))

    def input_fn(mode, **kwargs):
        image, label = mox.get_dataset("mnist", split, str(tmp_path / "data"), capacity=32).get(["image", "label"])
        image = tf.image.convert_image_dtype(image, tf.float32)
        return label, image

    result, seen = run_seeing(input_fn, steps=4, batch_size=10)
    labels = np.array(seen)
    assert labels.shape == (4, 10) and result.bad_samples == ()
    assert (np.sort(labels.reshape(2, PER_FILE)) == np.arange(PER_FILE)).all()


def test_a_record_without_an_image(tmp_path):
    from record_writing import example

    write(tmp_path / "mnist_test.tfrecord", [example({"image/class/label": 1}), slim_example(noise(28, 28, 1), 2)])

    def input_fn(mode, **kwargs):
        return mox.get_dataset("mnist", "test", str(tmp_path)).get(["label", "image"])

    result, seen = run_seeing(input_fn, steps=3)
    assert sum(seen, []) == [2, 2, 2]
    assert [bad.reason for bad in result.bad_samples] == ["has no 'image/encoded'; it has image/class/label"]

"""The MNIST reader on IDX files made here, and on the real ones where they are to be had."""

from __future__ import annotations

import gzip
import struct
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from moxing.tf1.examples.tutorials.mnist import idx, input_data
from moxing.tf1.examples.tutorials.mnist.dataset import DataSet

TRAIN, TEST = 60, 20


def images_file(number: int, seed: int) -> bytes:
    pixels = np.random.RandomState(seed).randint(0, 256, (number, 28, 28)).astype(np.uint8)
    return struct.pack(">4I", 2051, number, 28, 28) + pixels.tobytes()


def labels_file(number: int) -> bytes:
    return struct.pack(">2I", 2049, number) + bytes(i % 10 for i in range(number))


CONTENTS: dict[str, bytes] = dict(
    zip(
        idx.FILE_NAMES,
        (images_file(TRAIN, 1), labels_file(TRAIN), images_file(TEST, 2), labels_file(TEST)),
        strict=True,
    )
)


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(gzip.compress(content))
    return tmp_path


def read(directory: Path, **kwargs: object) -> input_data.Datasets:
    return input_data.read_data_sets(directory, validation_size=kwargs.pop("validation_size", 10), **kwargs)


def test_splits_the_front_of_the_training_images_off_for_validation(packed: Path) -> None:
    mnist = read(packed, dtype=np.uint8)
    assert [part.num_examples for part in mnist] == [TRAIN - 10, 10, TEST]
    pixels = np.frombuffer(CONTENTS[idx.FILE_NAMES[0]], np.uint8, offset=16).reshape(TRAIN, 784)
    np.testing.assert_array_equal(mnist.validation.images, pixels[:10])
    np.testing.assert_array_equal(mnist.train.images, pixels[10:])
    np.testing.assert_array_equal(mnist.train.labels, np.arange(10, TRAIN) % 10)


def test_unpacked_files_and_files_under_the_wrong_suffix_are_read(
    packed: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    unpacked = tmp_path_factory.mktemp("unpacked")
    for number, (name, content) in enumerate(CONTENTS.items()):
        (unpacked / (name if number == 0 else name.removesuffix(".gz"))).write_bytes(content)
    np.testing.assert_array_equal(read(unpacked).train.images, read(packed).train.images)


def test_floats_are_scaled_and_shapes_follow_reshape(packed: Path) -> None:
    scaled = read(packed)
    raw = read(packed, dtype=np.uint8, reshape=False)
    assert scaled.test.images.dtype == np.float32
    assert scaled.test.images.shape == (TEST, 784)
    assert raw.test.images.shape == (TEST, 28, 28, 1)
    expected = raw.test.images.reshape(TEST, 784).astype(np.float32) * (1.0 / 255.0)
    np.testing.assert_array_equal(scaled.test.images, expected)


def test_one_hot_labels(packed: Path) -> None:
    labels = read(packed, one_hot=True).test.labels
    assert labels.shape == (TEST, 10)
    np.testing.assert_array_equal(labels.argmax(axis=1), np.arange(TEST) % 10)
    assert labels.sum() == TEST


@pytest.mark.parametrize("size", [-1, TRAIN + 1])
def test_validation_size_out_of_range_names_the_range(packed: Path, size: int) -> None:
    with pytest.raises(ValueError, match=f"validation_size must be between 0 and {TRAIN}, got {size}"):
        read(packed, validation_size=size)


def test_a_type_that_is_neither_uint8_nor_float32_is_refused(packed: Path) -> None:
    with pytest.raises(TypeError, match="dtype must be uint8 or float32"):
        read(packed, dtype=np.float64)


@pytest.mark.parametrize("name", idx.FILE_NAMES)
def test_a_missing_file_is_named_with_all_four(packed: Path, name: str) -> None:
    (packed / name).unlink()
    with pytest.raises(FileNotFoundError) as error:
        read(packed)
    assert str(packed / name) in str(error.value)
    assert all(other in str(error.value) for other in idx.FILE_NAMES)


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        (idx.FILE_NAMES[0], lambda raw: gzip.compress(raw)[:200], "do not unpack"),
        (idx.FILE_NAMES[2], lambda raw: flipped(gzip.compress(raw)), "do not unpack"),
        (
            idx.FILE_NAMES[0],
            lambda raw: gzip.compress(CONTENTS[idx.FILE_NAMES[1]]),
            "magic number 2049, images have 2051",
        ),
        (idx.FILE_NAMES[3], lambda raw: b"<html>404</html>", "magic number"),
        (idx.FILE_NAMES[2], lambda raw: gzip.compress(raw[:-5]), "announces 15680 bytes of data, 15675 follow"),
        (idx.FILE_NAMES[1], lambda raw: raw + b"x", "announces 60 bytes of data, 61 follow"),
        (idx.FILE_NAMES[1], lambda raw: b"\0\0", "2 bytes, less than the 8"),
        (idx.FILE_NAMES[1], lambda raw: labels_file(TRAIN - 1), "59 labels, but .* 60 images"),
        (idx.FILE_NAMES[3], lambda raw: raw[:-1] + b"\x0b", "label 11"),
    ],
)
def test_a_damaged_file_is_named(packed: Path, name: str, damage: Callable[[bytes], bytes], message: str) -> None:
    (packed / name).write_bytes(damage(CONTENTS[name]))
    with pytest.raises(ValueError, match=message) as error:
        read(packed)
    assert str(packed / name) in str(error.value)


def numbered(number: int, **kwargs: object) -> DataSet:
    images = np.arange(number, dtype=np.uint8).reshape(number, 1, 1, 1)
    return DataSet(images, np.arange(number), dtype=np.uint8, **kwargs)


def test_an_epoch_gives_every_example_once_and_images_stay_with_their_labels() -> None:
    data = numbered(50)
    batches = [data.next_batch(10) for _ in range(5)]
    assert data.epochs_completed == 0
    labels = np.concatenate([labels for _, labels in batches])
    np.testing.assert_array_equal(np.concatenate([images for images, _ in batches])[:, 0], labels)
    assert sorted(labels) == list(range(50))
    assert list(labels) != list(range(50))


def test_the_rest_of_an_epoch_is_joined_with_the_reshuffled_next() -> None:
    data = numbered(10, seed=3)
    first = np.concatenate([data.next_batch(4)[1] for _ in range(2)])
    over_the_end = data.next_batch(4)[1]
    assert data.epochs_completed == 1
    assert sorted([*first, *over_the_end[:2]]) == list(range(10))
    rest = np.concatenate([data.next_batch(4)[1] for _ in range(2)])
    assert sorted([*over_the_end[2:], *rest]) == list(range(10))


def test_without_shuffle_the_order_is_that_of_the_file() -> None:
    data = numbered(5)
    assert [data.next_batch(3, shuffle=False)[1].tolist() for _ in range(3)] == [[0, 1, 2], [3, 4, 0], [1, 2, 3]]
    assert data.epochs_completed == 1


def test_a_batch_larger_than_the_data_spans_epochs() -> None:
    data = numbered(4)
    _, labels = data.next_batch(10)
    assert len(labels) == 10
    assert data.epochs_completed == 2
    assert sorted(labels[:4]) == sorted(labels[4:8]) == [0, 1, 2, 3]


def test_a_seed_gives_the_permutations_of_the_tutorial() -> None:
    data = numbered(6, seed=7)
    reference = np.random.RandomState(7)
    expected = np.arange(6)
    for _ in range(3):
        permutation = np.arange(6)
        reference.shuffle(permutation)
        expected = expected[permutation]
        assert data.next_batch(6)[1].tolist() == expected.tolist()


def test_numpy_random_seed_decides_where_no_seed_is_given() -> None:
    orders = []
    for _ in range(2):
        data = numbered(20)
        np.random.seed(5)
        orders.append(data.next_batch(20)[1].tolist())
    assert orders[0] == orders[1]


def test_writing_to_a_batch_leaves_the_data_alone() -> None:
    data = numbered(4)
    images, _ = data.next_batch(4, shuffle=False)
    images[:] = 99
    assert data.images.max() == 3


@pytest.mark.parametrize("size", [0, -3])
def test_batch_size_below_one_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"batch_size must be at least 1, got {size}"):
        numbered(4).next_batch(size)


def test_a_batch_of_an_empty_part_says_why(packed: Path) -> None:
    with pytest.raises(ValueError, match="empty data set"):
        read(packed, validation_size=0).validation.next_batch(1)


def test_fake_data_needs_no_files() -> None:
    mnist = input_data.read_data_sets("nowhere", fake_data=True)
    images, labels = mnist.validation.next_batch(3)
    assert images == [[1] * 784] * 3
    assert labels == [0, 0, 0]
    assert mnist.train.num_examples == 10000
    assert numbered(4, one_hot=True).next_batch(1, fake_data=True)[1] == [[1] + [0] * 9]


@pytest.mark.realdata
def test_real_files_load_fast_and_hold_the_known_split(real_data: Path) -> None:
    start = time.perf_counter()
    mnist = input_data.read_data_sets(real_data / "mnist", one_hot=True)
    # Generous: 1 s on the slow side, and a busy machine beside it.
    assert time.perf_counter() - start < 6
    assert [part.num_examples for part in mnist] == [55000, 5000, 10000]
    assert mnist.validation.labels.argmax(axis=1)[:5].tolist() == [5, 0, 4, 1, 9]
    images, labels = mnist.test.next_batch(100)
    assert images.shape == (100, 784)
    assert labels.shape == (100, 10)
    assert 0.0 <= images.min() < images.max() == 1.0


def test_the_graph_level_seed_of_tensorflow_decides_too() -> None:
    from moxing.tf1 import environment

    environment.prepare()
    import tensorflow as tf

    with tf.Graph().as_default():
        tf.compat.v1.set_random_seed(11)
        seeded = numbered(20)
    assert seeded.next_batch(20)[1].tolist() == numbered(20, seed=11).next_batch(20)[1].tolist()

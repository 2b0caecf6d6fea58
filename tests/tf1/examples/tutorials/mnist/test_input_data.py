"""The MNIST reader on IDX files made here, and on the real ones where they are to be had."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from moxing.tf1.examples.tutorials.mnist import idx, input_data

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
        (idx.FILE_NAMES[0], lambda raw: gzip.compress(raw)[:200], "cannot be decompressed"),
        (idx.FILE_NAMES[2], lambda raw: flipped(gzip.compress(raw)), "cannot be decompressed"),
        (
            idx.FILE_NAMES[0],
            lambda raw: gzip.compress(CONTENTS[idx.FILE_NAMES[1]]),
            "magic number 2049, expected 2051",
        ),
        (idx.FILE_NAMES[3], lambda raw: b"<html>404</html>", "magic number"),
        (
            idx.FILE_NAMES[2],
            lambda raw: gzip.compress(raw[:-5]),
            "expected 15680 bytes of data after .*, got 15675",
        ),
        (idx.FILE_NAMES[1], lambda raw: raw + b"x", "expected 60 bytes of data after the header, got 61"),
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


def test_a_batch_of_an_empty_part_says_why(packed: Path) -> None:
    with pytest.raises(ValueError, match="empty dataset"):
        read(packed, validation_size=0).validation.next_batch(1)


def test_fake_data_needs_no_files() -> None:
    mnist = input_data.read_data_sets("nowhere", fake_data=True)
    images, labels = mnist.validation.next_batch(3)
    assert images == [[1] * 784] * 3
    assert labels == [0, 0, 0]
    assert mnist.train.num_examples == 10000


@pytest.mark.realdata
def test_real_files_hold_the_known_split(real_data: Path) -> None:
    mnist = input_data.read_data_sets(real_data / "mnist", one_hot=True)
    assert [part.num_examples for part in mnist] == [55000, 5000, 10000]
    assert mnist.validation.labels.argmax(axis=1)[:5].tolist() == [5, 0, 4, 1, 9]
    images, labels = mnist.test.next_batch(100)
    assert images.shape == (100, 784)
    assert labels.shape == (100, 10)
    assert 0.0 <= images.min() < images.max() == 1.0

"""Images of a folder: sizes, decoding and augmentation of the user's own."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from image_folders import texts
from raw_running import nearest, run

import moxing.tensorflow as mox


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


@pytest.mark.slow
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


@pytest.mark.slow
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

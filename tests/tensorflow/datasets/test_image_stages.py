"""The work on images, from encoded bytes on: sizes, functions of the user, batches."""

from __future__ import annotations

import io

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from image_folders import elements, session
from PIL import Image

from moxing.tensorflow.datasets.image_stages import ImageStages
from moxing.tensorflow.datasets.sample_source import NUMBER, POSITION, SEED
from moxing.tensorflow.preprocessing import get_data_augmentation_fn

IMAGES = [np.random.default_rng(number).integers(0, 256, (6 + number, 9, 3), np.uint8) for number in range(5)]


def encoded(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def run(stages: ImageStages, *names: str) -> list[list[np.ndarray]]:
    """The features of all elements when the images go through the stages."""
    with session() as opened:
        numbers = np.arange(5)
        dataset = tf.data.Dataset.from_tensor_slices(
            {
                "image": np.array([encoded(image) for image in IMAGES], object),
                "label": numbers,
                "label_desc": np.array([b"even", b"odd"])[numbers % 2],
                "image_name": np.array([b"%d.png" % number for number in numbers], object),
                POSITION: numbers,
                NUMBER: numbers,
                SEED: np.stack([numbers, numbers], axis=1),
            }
        )
        for stage, parallel in stages.stages():
            dataset = dataset.map(stage, num_parallel_calls=parallel)
        element = tf.data.make_one_shot_iterator(stages.finish(dataset)).get_next()
        return elements(opened, [element[name] for name in names])


def make(**options) -> ImageStages:
    return ImageStages(None, readers=2, threads=3, **options)


def nearest(image: np.ndarray, height: int, width: int) -> np.ndarray:
    rows = np.arange(height) * image.shape[0] // height
    columns = np.arange(width) * image.shape[1] // width
    return image[rows][:, columns]


def test_decodes():
    for image, (decoded,) in zip(IMAGES, run(make(), "image"), strict=True):
        np.testing.assert_array_equal(decoded, image)


@pytest.mark.parametrize("image_size", [7, (4, 11), [12, 5], np.int64(3), np.array([4, 4]), (np.int32(2), 20)], ids=str)
def test_image_size_takes_the_nearest_pixels(image_size):
    height, width = image_size if np.iterable(image_size) else (image_size, image_size)
    for image, (resized,) in zip(IMAGES, run(make(image_size=image_size), "image"), strict=True):
        np.testing.assert_array_equal(resized, nearest(image, height, width))


@pytest.mark.parametrize(
    "image_size", [0, -3, (3, 0), (3,), (1, 2, 3), 2.5, 224.0, "224", "22", (4, "4"), True, (), {}]
)
def test_a_wrong_image_size_is_named(image_size):
    with pytest.raises(ValueError) as error:
        make(image_size=image_size)
    assert f"image_size={image_size!r}: expected a number of pixels, or a pair" in str(error.value)


def test_a_batch_needs_one_size():
    with pytest.raises(ValueError, match="(?s)batch_size=4.*image_size.*preprocess_fn.*augmentation_fn"):
        make(batch_size=4)


@pytest.mark.parametrize("name", ["preprocess_fn", "augmentation_fn"])
def test_what_is_no_function_is_named(name):
    with pytest.raises(ValueError, match=f"{name}='vgg': expected a function"):
        make(image_size=3, **{name: "vgg"})


@pytest.mark.parametrize("returned", [lambda name, image, label, text: image, lambda *all_four: all_four[:3]])
def test_what_preprocess_fn_must_return(returned):
    with pytest.raises(ValueError, match="preprocess_fn.*image_name, image, label, label_desc"):
        run(make(preprocess_fn=returned), "image")


def test_batches_of_preprocess_fn_are_augmented_one_by_one():
    seen = []

    def preprocess(image_name, image, label, label_desc):
        seen.append([tensor.shape.as_list() for tensor in (image_name, image, label, label_desc)])
        decoded = tf.map_fn(lambda one: tf.io.decode_png(one, 3)[:5, :5], image, tf.uint8)
        return image_name + "!", tf.ensure_shape(decoded, [None, 5, 5, 3]), label * 10, label_desc

    def augment(image):
        seen.append(image.shape.as_list())
        return tf.cast(image, tf.float32) + 0.5

    batches = run(make(batch_size=2, preprocess_fn=preprocess, augmentation_fn=augment), "image", "label", "image_name")
    assert seen == [[[None]] * 4, [5, 5, 3]]
    assert [label.tolist() for _, label, _ in batches] == [[0, 10], [20, 30], [40]]
    assert batches[2][2].tolist() == [b"4.png!"]
    np.testing.assert_array_equal(np.concatenate([images for images, *_ in batches]), [i[:5, :5] + 0.5 for i in IMAGES])


@pytest.mark.slow
@pytest.mark.parametrize("training", ["TRAIN", "EVAL"])
def test_our_augmentation_is_the_same_while_decoding_and_afterwards(training):
    augment = get_data_augmentation_fn("cifarnet", training, 8, 8)
    decoding = run(make(augmentation_fn=augment), "image")
    batched = run(make(augmentation_fn=augment, batch_size=5), "image")
    np.testing.assert_array_equal([image for (image,) in decoding], batched[0][0])

    def decode(image_name, image, label, label_desc):
        return image_name, tf.io.decode_png(image, 3), label, label_desc

    after = run(make(augmentation_fn=augment, preprocess_fn=decode), "image")
    np.testing.assert_allclose([image for (image,) in after], batched[0][0], atol=1e-5)


def test_labels_as_vectors():
    (batch,) = run(make(image_size=4, batch_size=5, num_classes=6), "label")
    np.testing.assert_array_equal(batch[0], np.eye(6, dtype=np.float32)[:5])
    assert batch[0].dtype == np.float32


def test_drop_remainder():
    sizes = [len(labels) for (labels,) in run(make(image_size=4, batch_size=2, drop_remainder=True), "label")]
    assert sizes == [2, 2]

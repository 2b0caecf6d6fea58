"""VGG's pipeline: evaluation against NumPy, training by the distribution of what it decides."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from augmenting import MEANS, augment, bilinear, chi_square, draw, encode, limit, noise, photo, positions

from moxing.tensorflow.preprocessing import get_data_augmentation_fn


@pytest.mark.parametrize("source", [(375, 500), (500, 334), (256, 256), (100, 87)])
@pytest.mark.parametrize("mode", ["EVAL", "PREDICT", "EXPORT"])
def test_evaluation(source, mode):
    image = noise(*source)
    scale = 256 / min(source)
    height, width = (round(length * scale) for length in source)
    top, left = (height - 224) // 2, (width - 200) // 2
    expected = bilinear(image, height, width)[top : top + 224, left : left + 200] - MEANS
    np.testing.assert_allclose(augment("resnet_v1_50", mode, image, 224, 200), expected, atol=0.02)


def test_evaluation_takes_its_own_side():
    image = noise(60, 80)
    expected = bilinear(image, 30, 40)[3:27, 10:30] - MEANS
    np.testing.assert_allclose(augment("vgg_16", "EVAL", image, 24, 20, resize_side_min=30), expected, atol=0.01)


@pytest.mark.parametrize("mode", ["TRAIN", "EVAL"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_type_of_the_image_does_not_matter(mode, dtype):
    image = noise(90, 120)
    options = {"seed": (3, 4), "resize_side_min": 50, "resize_side_max": 70}
    first = augment("vgg_16", mode, image, 48, 48, **options)
    np.testing.assert_array_equal(first, augment("vgg_16", mode, image.astype(dtype), 48, 48, **options))


def decisions(images: np.ndarray, height: int, width: int) -> dict[str, np.ndarray]:
    """From pixels that say where they were: the size of the resized image, the corner of the crop, mirrored or not.

    The part is cut out at whole pixels, which are small here: the image is ten times as large as what it is resized to.
    """
    pixels = images + MEANS
    across = pixels[:, 0, 1, 0] - pixels[:, 0, 0, 0]
    found = {
        "rows": (pixels[:, 1, 0, 1] - pixels[:, 0, 0, 1]) * pixels.shape[1],
        "columns": np.abs(across) * pixels.shape[2],
        "top": pixels[:, 0, 0, 1],
        "left": np.where(across < 0, pixels[:, 0, -1, 0], pixels[:, 0, 0, 0]),
    }
    whole = {name: np.rint(values).astype(int) for name, values in found.items()}
    for name, values in found.items():
        np.testing.assert_allclose(values, whole[name], atol=0.05)  # else the pixels were not what we took them for
    resized = np.rint(pixels.shape[1] * height / whole["rows"]).astype(int)
    resized_width = np.rint(pixels.shape[2] * width / whole["columns"]).astype(int)
    return {
        "height": resized,
        "width": resized_width,
        "top": np.rint((whole["top"] + 0.5) * resized / height).astype(int),
        "left": np.rint((whole["left"] + 0.5) * resized_width / width).astype(int),
        "mirrored": across < 0,
    }


def test_training_side_and_mirror():
    images = draw("vgg_16", positions(400, 600), 24, 24, resize_side_min=32, resize_side_max=48)
    found = decisions(images, 400, 600)
    assert chi_square(found["height"], 32, 48) < limit(17)
    # A whole number of columns tells the width to one or two pixels.
    np.testing.assert_allclose(found["width"], np.rint(found["height"] * 1.5), atol=1)
    assert abs(found["mirrored"].mean() - 0.5) < 0.03
    assert abs(np.corrcoef(found["mirrored"], found["height"])[0, 1]) < 0.07
    assert (found["top"] >= 0).all() and (found["top"] <= found["height"] - 24).all()
    assert (found["left"] >= 0).all() and (found["left"] <= found["width"] - 24).all()


def test_training_place():
    images = draw("resnet_v1_50", positions(400, 500), 24, 20, resize_side_min=32, resize_side_max=32)
    found = decisions(images, 400, 500)
    assert set(found["height"]) == {32} and set(found["width"]) == {40}
    assert chi_square(found["top"], 0, 32 - 24) < limit(9)
    assert chi_square(found["left"], 0, 40 - 20) < limit(21)
    assert abs(np.corrcoef(found["top"], found["left"])[0, 1]) < 0.07
    assert abs(np.corrcoef(found["mirrored"], found["left"])[0, 1]) < 0.07


@pytest.mark.parametrize("side", [30, 100, 333])
def test_training_is_the_resized_and_cropped_image_but_for_a_part_of_a_pixel(side):
    """A crop that has only one place to be: of the whole image, to its own size."""
    image = photo(100, 100)
    expected = bilinear(image, side, side) - MEANS
    options = {"seed": (1, 2), "resize_side_min": side, "resize_side_max": side}
    found = augment("vgg_16", "TRAIN", image, side, side, **options)
    error = min(np.abs(found - expected).max(), np.abs(found[:, ::-1] - expected).max())
    assert error < 0.02


def test_training_depends_on_the_seed_alone():
    image, size = noise(40, 60), (24, 24)
    sides = {"resize_side_min": 32, "resize_side_max": 48}
    parallel = draw("vgg_16", image, *size, count=50, parallel=8, **sides)
    sequential = draw("vgg_16", image, *size, count=50, parallel=None, **sides)
    np.testing.assert_array_equal(parallel, sequential)
    np.testing.assert_array_equal(parallel[11], augment("vgg_16", "TRAIN", image, *size, seed=(11, 7), **sides))
    assert len({each.tobytes() for each in parallel}) == 50


@pytest.mark.slow
def test_training_of_encoded_images():
    sides = {"seed": (5, 6), "resize_side_min": 64, "resize_side_max": 64}
    image = photo(300, 400)
    png = augment("vgg_16", "TRAIN", encode(image, "PNG"), 48, 48, encoded=True, **sides)
    decoded = augment("vgg_16", "TRAIN", image, 48, 48, **sides)
    np.testing.assert_array_equal(png, decoded)
    # A JPEG is decoded at a quarter of its size: the same part of the same picture, though not the same numbers.
    jpeg = augment("vgg_16", "TRAIN", encode(image, "JPEG"), 48, 48, encoded=True, **sides)
    assert 0 < np.abs(jpeg - decoded).mean() < 3
    same_size = photo(100, 90)
    with tf.Graph().as_default(), tf.Session() as session:
        pixels = session.run(tf.image.decode_jpeg(encode(same_size, "JPEG"), dct_method="INTEGER_ACCURATE"))
    np.testing.assert_allclose(
        augment("vgg_16", "TRAIN", encode(same_size, "JPEG"), 48, 48, encoded=True, **sides),
        augment("vgg_16", "TRAIN", pixels, 48, 48, **sides),
        atol=1e-4,
    )


def test_evaluation_of_encoded_images_is_exact():
    data = encode(photo(700, 900), "JPEG")
    with tf.Graph().as_default(), tf.Session() as session:
        pixels = session.run(tf.image.decode_jpeg(data, dct_method="INTEGER_ACCURATE"))
    np.testing.assert_array_equal(augment("vgg_16", "EVAL", data, encoded=True), augment("vgg_16", "EVAL", pixels))


def test_output_larger_than_the_resized_image():
    with pytest.raises(ValueError, match=r"output_height=299 is more than resize_side_min=256.*resize_side_min=299"):
        get_data_augmentation_fn("resnet_v1_50", "TRAIN", 299, 224)
    with pytest.raises(ValueError, match="output_width=64 is more than resize_side_min=60"):
        get_data_augmentation_fn("resnet_v1_50", "EVAL", 60, 64, resize_side_min=60)
    with pytest.raises(ValueError, match=r"resize_side_min=600, resize_side_max=512: expected resize_side_min <="):
        get_data_augmentation_fn("resnet_v1_50", "TRAIN", resize_side_min=600)
    augment("resnet_v1_50", "TRAIN", noise(50, 50), 299, 299, seed=(1, 2), resize_side_min=299)

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
    """From pixels that say where they were: the size of the resized image, the corner of the crop, mirrored or not."""
    pixels = images + MEANS
    middle = pixels.shape[1] // 2
    down = pixels[:, middle, middle, 1] - pixels[:, middle - 1, middle, 1]
    across = pixels[:, middle, middle, 0] - pixels[:, middle, middle - 1, 0]
    mirrored = across < 0
    row = pixels[:, middle, middle, 1] / down - middle
    from_left = np.where(mirrored, pixels.shape[2] - 1 - middle, middle)
    column = pixels[:, middle, middle, 0] / np.abs(across) - from_left
    found = {"height": height / down, "width": width / np.abs(across), "top": row, "left": column}
    whole = {name: np.rint(values).astype(int) for name, values in found.items()}
    for name, values in found.items():
        np.testing.assert_allclose(values, whole[name], atol=0.05)  # else the pixels were not what we took them for
    return {**whole, "mirrored": mirrored}


def test_training_side_and_mirror():
    found = decisions(draw("vgg_16", positions(40, 60), 24, 24, resize_side_min=32, resize_side_max=48), 40, 60)
    assert chi_square(found["height"], 32, 48) < limit(17)
    np.testing.assert_array_equal(found["width"], np.rint(found["height"] * 1.5))
    assert abs(found["mirrored"].mean() - 0.5) < 0.03
    assert abs(np.corrcoef(found["mirrored"], found["height"])[0, 1]) < 0.07
    assert (found["top"] >= 0).all() and (found["top"] <= found["height"] - 24).all()
    assert (found["left"] >= 0).all() and (found["left"] <= found["width"] - 24).all()


def test_training_place():
    found = decisions(draw("resnet_v1_50", positions(40, 50), 24, 20, resize_side_min=32, resize_side_max=32), 40, 50)
    assert set(found["height"]) == {32} and set(found["width"]) == {40}
    assert chi_square(found["top"], 0, 32 - 24) < limit(9)
    assert chi_square(found["left"], 0, 40 - 20) < limit(21)
    assert abs(np.corrcoef(found["top"], found["left"])[0, 1]) < 0.07
    assert abs(np.corrcoef(found["mirrored"], found["left"])[0, 1]) < 0.07


def test_training_depends_on_the_seed_alone():
    image, size = noise(40, 60), (24, 24)
    sides = {"resize_side_min": 32, "resize_side_max": 48}
    parallel = draw("vgg_16", image, *size, count=50, parallel=8, **sides)
    sequential = draw("vgg_16", image, *size, count=50, parallel=None, **sides)
    np.testing.assert_array_equal(parallel, sequential)
    np.testing.assert_array_equal(parallel[11], augment("vgg_16", "TRAIN", image, *size, seed=(11, 7), **sides))
    assert len({each.tobytes() for each in parallel}) == 50


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
        pixels = session.run(tf.image.decode_jpeg(encode(same_size, "JPEG")))
    np.testing.assert_allclose(
        augment("vgg_16", "TRAIN", encode(same_size, "JPEG"), 48, 48, encoded=True, **sides),
        augment("vgg_16", "TRAIN", pixels, 48, 48, **sides),
        atol=1e-4,
    )


def test_evaluation_of_encoded_images_is_exact():
    data = encode(photo(700, 900), "JPEG")
    with tf.Graph().as_default(), tf.Session() as session:
        pixels = session.run(tf.image.decode_jpeg(data))
    np.testing.assert_array_equal(augment("vgg_16", "EVAL", data, encoded=True), augment("vgg_16", "EVAL", pixels))


def test_output_larger_than_the_resized_image():
    with pytest.raises(ValueError, match=r"output_height=299 is more than resize_side_min=256.*resize_side_min=299"):
        get_data_augmentation_fn("resnet_v1_50", "TRAIN", 299, 224)
    with pytest.raises(ValueError, match="output_width=64 is more than resize_side_min=60"):
        get_data_augmentation_fn("resnet_v1_50", "EVAL", 60, 64, resize_side_min=60)
    with pytest.raises(ValueError, match=r"resize_side_min=600, resize_side_max=512: expected resize_side_min <="):
        get_data_augmentation_fn("resnet_v1_50", "TRAIN", resize_side_min=600)
    augment("resnet_v1_50", "TRAIN", noise(50, 50), 299, 299, seed=(1, 2), resize_side_min=299)

"""Inception's pipeline: evaluation against NumPy, training by the distribution of what it decides."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from augmenting import augment, bilinear, chi_square, draw, encode, limit, noise, photo

from moxing.tensorflow.preprocessing import get_data_augmentation_fn


@pytest.mark.parametrize("source", [(375, 500), (299, 301), (40, 33)])
@pytest.mark.parametrize("fraction", [0.875, 0.6, 1.0])
def test_evaluation(source, fraction):
    image = noise(*source)
    top, left = (int((length - length * fraction) / 2) for length in source)
    middle = image[top : source[0] - top, left : source[1] - left]
    expected = (bilinear(middle, 120, 100) / 255 - 0.5) * 2
    result = augment("inception_v3", "EVAL", image, 120, 100, central_fraction=fraction)
    np.testing.assert_allclose(result, expected, atol=1e-4)
    floats = augment("inception_v3", "EVAL", image.astype(np.float32), 120, 100, central_fraction=fraction)
    np.testing.assert_array_equal(result, floats)


def test_evaluation_cuts_as_central_crop_does():
    with tf.Graph().as_default(), tf.Session() as session:
        image = tf.placeholder(tf.float32, [None, 1, 3])
        middle = tf.image.resize_bilinear([tf.image.central_crop(image, 0.875)], [50, 1])[0]
        both = [get_data_augmentation_fn("inception", "EVAL", 50, 1)(image), 2 * middle / 255 - 1]
        for length in range(1, 200):
            lines = np.arange(length, dtype=np.float32).reshape(length, 1, 1).repeat(3, axis=2)
            np.testing.assert_allclose(*session.run(both, {image: lines}), atol=1e-5)


# The smallest box, a tenth of the image, is larger than the output: no pixel is read beyond its edge.
HEIGHT, WIDTH, OUT = 60, 90, 16


def grey(values: np.ndarray) -> np.ndarray:
    """Grey, on which saturation has no effect, and from 0.3 to 0.7, so that brightness is never clipped."""
    return ((0.3 + 0.4 * values) * 255).astype(np.float32)[..., None].repeat(3, axis=2)


def boxes() -> dict[str, np.ndarray]:
    """The box, brightness and orientation of every draw: the same seeds on three images that show one thing each."""
    row, column = np.mgrid[0:HEIGHT, 0:WIDTH]
    images = [np.zeros((HEIGHT, WIDTH)), row / HEIGHT, column / WIDTH]
    flat, rows, columns = (draw("inception_v3", grey(image), OUT, OUT)[..., 0] / 2 + 0.5 for image in images)
    row, column = (rows - flat) / 0.4 * HEIGHT, (columns - flat) / 0.4 * WIDTH
    down, across = row[:, 1, 0] - row[:, 0, 0], column[:, 0, 1] - column[:, 0, 0]
    mirrored = across < 0
    return {
        "brightness": flat[:, 0, 0] - 0.3,
        "mirrored": mirrored,
        "top": row[:, 0, 0],
        "left": np.where(mirrored, column[:, 0, -1], column[:, 0, 0]),
        "height": down * OUT,
        "width": np.abs(across) * OUT,
    }


@pytest.mark.slow
def test_training_box_mirror_and_brightness():
    found = boxes()
    sides = np.stack([found["height"], found["width"], found["top"], found["left"]])
    np.testing.assert_allclose(sides, np.rint(sides), atol=0.02)
    height, width, top, left = np.rint(sides).astype(int)
    assert top.min() == 0 and left.min() == 0
    # TensorFlow's operation never puts a box that is smaller than the image into the last line or column.
    assert (top + height).max() == HEIGHT and (left + width).max() == WIDTH - 1
    # A box has whole sides: its ratio is off by up to half a pixel, its area by that much too.
    assert ((width + 0.5) / height >= 0.75).all() and ((width - 0.5) / height <= 1.33).all()
    ratio = width / height
    assert ratio.min() < 0.78 and ratio.max() > 1.30 and abs(ratio.mean() - 1.04) < 0.02
    area = height * width / (HEIGHT * WIDTH)
    assert area.min() >= 0.1 and area.min() < 0.12 and area.max() > 0.75  # a box as high as the image is 80 wide
    lower = height < HEIGHT - 1
    free = top[lower] / (HEIGHT - 1 - height[lower])
    assert abs(free.mean() - 0.5) < 0.03 and free.min() == 0 and free.max() == 1
    assert abs(found["mirrored"].mean() - 0.5) < 0.03
    brightness = found["brightness"] * 255 / 32
    assert np.abs(brightness).max() <= 1.001
    assert chi_square(np.minimum((brightness + 1) * 5, 9).astype(int), 0, 9) < limit(10)
    assert abs(np.corrcoef(brightness, found["mirrored"])[0, 1]) < 0.07


def test_training_saturation():
    # Of one colour, brightness moves all channels and saturation spreads them below the largest.
    image = np.full((9, 9, 3), [0.6, 0.5, 0.4], np.float32) * 255
    colours = draw("mobilenet_v2", image, 4, 4)[:, 0, 0] / 2 + 0.5
    factor = (colours[:, 0] - colours[:, 2]) / 0.2
    assert factor.min() > 0.499 and factor.max() < 1.501
    assert chi_square(np.minimum((factor - 0.5) * 10, 9).astype(int), 0, 9) < limit(10)
    np.testing.assert_allclose(colours[:, 1], (colours[:, 0] + colours[:, 2]) / 2, atol=1e-3)  # the hue stays


def test_training_values_are_clipped():
    values = draw("inception_v1", noise(20, 20), 8, 8, count=200)
    assert values.min() == -1 and values.max() == 1


def test_full_mode_resizes_in_four_ways():
    # A step from dark to light, enlarged: nearest and area leave at most one value between, bilinear makes a ramp,
    # bicubic overshoots. Boxes without the step, or with it at their edge, do not count.
    image = grey((np.mgrid[0:16, 0:16][1] >= 8).astype(float))
    lines = draw("inception_v3", image, 64, 64, fast_mode=False)[:, 32, :, 0]
    low, high = np.minimum(lines[:, :1], lines[:, -1:]), np.maximum(lines[:, :1], lines[:, -1:])
    known = (high - low)[:, 0] > 0.05
    place = (lines[known] - low[known]) / (high - low)[known]
    over = ((place < -0.02) | (place > 1.02)).any(axis=1)
    between = ((place > 0.02) & (place < 0.98)).sum(axis=1)
    assert known.sum() > 800
    assert abs(over.mean() - 0.25) < 0.05
    assert abs((~over & (between > 1)).mean() - 0.25) < 0.05
    assert abs((~over & (between <= 1)).mean() - 0.5) < 0.05


@pytest.mark.parametrize(("fast_mode", "first"), [(True, {0}), (False, {0, 1})])
def test_only_full_mode_turns_the_hue(fast_mode, first):
    # Orange, turned by up to 0.2 of the circle: red is no longer always the largest, but never blue.
    image = np.full((9, 9, 3), [0.6, 0.5, 0.4], np.float32) * 255
    colours = draw("inception_v3", image, 4, 4, count=400, fast_mode=fast_mode)[:, 0, 0]
    assert set(np.argmax(colours, axis=1)) == first


@pytest.mark.parametrize(("fast_mode", "lowest", "highest"), [(True, 1, 1), (False, 0.5, 1.5)])
def test_only_full_mode_changes_the_contrast(fast_mode, lowest, highest):
    image = np.full((2, 40, 3), 0.45 * 255, np.float32)
    image[:, 20:] = 0.55 * 255
    lines = draw("inception_v3", image, 1, 64, count=400, fast_mode=fast_mode)[:, 0, :, 0] / 2 + 0.5
    step = np.abs(lines[:, -1] - lines[:, 0]) / 0.1
    step = step[step > 0.3]  # boxes with both sides of the step in them
    assert len(step) > 100
    assert step.min() > lowest - 0.001 and step.max() < highest * 1.2
    assert abs(step.min() - lowest) < 0.05 and step.max() > highest - 0.05


@pytest.mark.parametrize("fast_mode", [True, False])
def test_training_depends_on_the_seed_alone(fast_mode):
    image = noise(40, 60)
    parallel = draw("inception_v3", image, 20, 24, count=40, parallel=8, fast_mode=fast_mode)
    sequential = draw("inception_v3", image, 20, 24, count=40, parallel=None, fast_mode=fast_mode)
    np.testing.assert_array_equal(parallel, sequential)
    alone = augment("inception_v3", "TRAIN", image, 20, 24, seed=(3, 7), fast_mode=fast_mode)
    np.testing.assert_allclose(parallel[3], alone, atol=1e-6)
    floats = augment("inception_v3", "TRAIN", image.astype(np.float32), 20, 24, seed=(3, 7), fast_mode=fast_mode)
    np.testing.assert_array_equal(alone, floats)
    assert len({each.tobytes() for each in parallel}) == 40


@pytest.mark.slow
def test_encoded_images():
    image = photo(500, 600)
    for mode in ("TRAIN", "EVAL"):
        png = augment("inception_v3", mode, encode(image, "PNG"), 40, 48, seed=(1, 2), encoded=True)
        np.testing.assert_array_equal(png, augment("inception_v3", mode, image, 40, 48, seed=(1, 2)))
    data = encode(image, "JPEG")
    with tf.Graph().as_default(), tf.Session() as session:
        pixels = session.run(tf.image.decode_jpeg(data, dct_method="INTEGER_ACCURATE"))
    evaluated = augment("inception_v3", "EVAL", data, 40, 48, encoded=True)
    np.testing.assert_array_equal(evaluated, augment("inception_v3", "EVAL", pixels, 40, 48))
    for index in range(8):  # decoded smaller than it is, the box is still the same part of the picture
        small = augment("inception_v3", "TRAIN", data, 40, 48, seed=(index, 2), encoded=True)
        whole = augment("inception_v3", "TRAIN", pixels, 40, 48, seed=(index, 2))
        assert np.abs(small - whole).mean() < 0.06 < np.abs(small - whole[:, ::-1]).mean()


def test_bad_fraction():
    with pytest.raises(ValueError, match="central_fraction=1.5: expected more than 0 and at most 1"):
        get_data_augmentation_fn("inception_v3", "EVAL", central_fraction=1.5)

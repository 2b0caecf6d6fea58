"""What the tests of the pipelines share: the mathematics in NumPy, images that carry their positions, many draws."""

from __future__ import annotations

import io

import numpy as np
import tensorflow.compat.v1 as tf
from PIL import Image

from moxing.tensorflow.preprocessing import get_data_augmentation_fn
from moxing.tensorflow.preprocessing.pictures import DecodedPicture, EncodedPicture

DRAWS = 2000
MEANS = np.array([123.68, 116.78, 103.94])


def noise(height: int, width: int, channels: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)


def photo(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Smooth as photos are, so that a JPEG of it at half the size is about the same picture."""
    y, x = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    waves = [np.sin(7 * x + 3 * y + seed), np.sin(5 * y - 2 * x), np.cos(4 * x * y + seed)]
    return np.stack([127.5 + 100 * wave for wave in waves], axis=-1).astype(np.uint8)


def positions(height: int, width: int) -> np.ndarray:
    """Every pixel says where it is: (column, row, 7)."""
    row, column = np.mgrid[0:height, 0:width]
    return np.stack([column, row, np.full_like(row, 7)], axis=-1).astype(np.float32)


def encode(image: np.ndarray, kind: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, kind)
    return file.getvalue()


def bilinear(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """Output line i reads position i * old / new, between its neighbours; the last line has itself as the next."""

    def along(values: np.ndarray, new: int) -> np.ndarray:
        old = values.shape[0]
        position = np.arange(new) * old / new
        low = np.floor(position).astype(int)
        high = np.minimum(low + 1, old - 1)
        part = (position - low).reshape(-1, *[1] * (values.ndim - 1))
        return values[low] * (1 - part) + values[high] * part

    rows = along(image.astype(np.float64), height)
    return along(rows.swapaxes(0, 1), width).swapaxes(0, 1)


def augment(name: str, mode: str, image, *size, seed=None, encoded: bool = False, **options) -> np.ndarray:
    with tf.Graph().as_default(), tf.Session() as session:
        fn = get_data_augmentation_fn(name, mode, *size, **options)
        picture = EncodedPicture(tf.constant(image)) if encoded else DecodedPicture(tf.constant(image))
        result = fn.apply(picture, None if seed is None else tf.constant(seed))
        assert result.dtype == tf.float32
        assert result.shape == (fn.output_height, fn.output_width, picture.channels)
        return session.run(result)


def draw(name: str, image, *size, count: int = DRAWS, parallel: int = 2, **options) -> np.ndarray:
    """The training forms of `image` under the seeds (0, 7), (1, 7), ..."""
    with tf.Graph().as_default(), tf.Session() as session:
        fn = get_data_augmentation_fn(name, "TRAIN", *size, **options)

        def one(index):
            return fn(tf.constant(image), seed=tf.stack([index, 7]))

        dataset = tf.data.Dataset.range(count, output_type=tf.int32).map(one, num_parallel_calls=parallel).batch(count)
        return session.run(tf.data.make_one_shot_iterator(dataset).get_next())


def chi_square(values: np.ndarray, lowest: int, highest: int) -> float:
    """Distance from the uniform distribution over lowest, ..., highest; anything outside counts as infinitely far."""
    counts = np.bincount(values - min(lowest, values.min()), minlength=highest - lowest + 1)
    if values.min() < lowest or counts.size > highest - lowest + 1:
        return float("inf")
    expected = len(values) / counts.size
    return float(((counts - expected) ** 2 / expected).sum())


def limit(cells: int) -> float:
    """A chi-square with `cells` - 1 degrees of freedom stays below this with a probability of more than 0.9999."""
    freedom = cells - 1
    return freedom * (1 - 2 / (9 * freedom) + 3.8 * np.sqrt(2 / (9 * freedom))) ** 3

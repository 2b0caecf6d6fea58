"""Runs datasets of image folders for their tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf
from image_folders import elements, session, texts
from PIL import Image

import moxing.tensorflow as mox

COUNTS = {"cat": 5, "dog": 4, "elk": 2}


ALL = [f"{number:03d}.png" for number in range(11)]


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

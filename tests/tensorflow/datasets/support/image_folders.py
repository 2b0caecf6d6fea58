"""Folders of real images for the tests of datasets, and ways to iterate over them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from PIL import Image

JUNK = b"this is no image"


def write_image(path: Path, number: int, height: int = 6, width: int = 8, **options: Any) -> np.ndarray:
    """Writes an image of noise that follows from `number`, in the format of the file's name; returns its pixels."""
    pixels = np.random.default_rng(number).integers(0, 256, (height, width, 3), np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return pixels


def write_folder(root: Path, counts: Mapping[str, int], size: tuple[int, int] | None = None) -> dict[str, np.ndarray]:
    """Writes PNG images `root/<class>/<number>.png`, of different sizes unless one is given; pixels by file name."""
    images: dict[str, np.ndarray] = {}
    for name, count in counts.items():
        for _ in range(count):
            number = len(images)
            height, width = size or (5 + number % 4, 6 + number % 3)
            file = f"{number:03d}.png"
            images[file] = write_image(root / name / file, number, height, width)
    return images


@contextmanager
def session() -> Iterator[tf.Session]:
    """A session in a graph of its own."""
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def elements(opened: tf.Session, fetches: Any, most: int = 10**6) -> list[Any]:
    """What `fetches` give until the data ends, or `most` times."""
    values = []
    try:
        while len(values) < most:
            values.append(opened.run(fetches))
    except tf.errors.OutOfRangeError:
        pass
    return values


def texts(values: Sequence[bytes]) -> list[str]:
    return [value.decode() for value in values]


def put(root, *names, content=b""):
    """Writes files below a directory."""
    for name in names:
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(content)


def labels_txt(root, text):
    """Writes a labels.txt."""
    (root / "labels.txt").write_text(text)


def multilabel(root, labels, images=()):
    for name, text in labels.items():
        put(root, f"images/{name}")
        put(root, f"labels/{name}.txt", content=text.encode())
    put(root, *(f"images/{name}" for name in images))

"""One training sample with Pillow and NumPy, as in PyTorch data loaders."""

from __future__ import annotations

import random

import numpy as np
from common import LONGEST, MEANS, SHORTEST, SIDE
from PIL import Image

MEAN = np.array(MEANS, np.float32)


def sample(path: str, fused: bool, into: np.ndarray) -> None:
    """Read, resize, crop and flip an image; `fused` resizes only the window of the crop."""
    with Image.open(path) as file:
        picture = file.convert("RGB")
    scale = random.randint(SHORTEST, LONGEST) / min(picture.size)
    width, height = (round(side * scale) for side in picture.size)
    left, top = random.randint(0, width - SIDE), random.randint(0, height - SIDE)
    box = (left, top, left + SIDE, top + SIDE)
    if fused:
        # Rounding can extend the window a fraction of a pixel beyond the image, which Pillow rejects.
        window = tuple(min(side / scale, end) for side, end in zip(box, 2 * picture.size, strict=True))
        picture = picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=window)
    else:
        picture = picture.resize((width, height), Image.Resampling.BILINEAR).crop(box)
    pixels = np.asarray(picture)
    if random.random() < 0.5:
        pixels = pixels[:, ::-1]
    np.subtract(pixels, MEAN, out=into)

"""Image folders with one colour per class."""

from __future__ import annotations

import numpy as np
from PIL import Image

#: One colour a class, so that a tile tells which class it is of.
COLOURS = {"blue": (10, 40, 230), "green": (20, 200, 30), "red": (240, 30, 20)}


def textured(colour, size=(60, 40)):
    """A colour with a pattern in it."""
    pattern = np.arange(size[0] * size[1]).reshape(size[1], size[0], 1) * 7 % 20
    return Image.fromarray(np.clip(np.array(colour) + pattern - 10, 0, 255).astype(np.uint8))

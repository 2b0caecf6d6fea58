"""Photos of three classes that any network tells apart: plain colours."""

from __future__ import annotations

import random
from pathlib import Path

from PIL import Image

COLOURS = {"blue": (30, 40, 220), "green": (30, 200, 40), "red": (220, 40, 30)}
#: Options of train.py: a network without batch normalisation, which learns the colours in a few steps.
SMALL = ("--model_name", "cifarnet", "--image_size", "32", "--batch_size", "8")


def draw(folder: Path, count: int = 10, names: tuple[str, ...] = tuple(COLOURS)) -> Path:
    """Draws `count` photos of each colour into `folder/<colour>/` and returns the folder."""
    shades = random.Random(1)
    for name in names:
        (folder / name).mkdir(parents=True)
        for number in range(count):
            shade = tuple(min(max(value + shades.randint(-25, 25), 0), 255) for value in COLOURS[name])
            Image.new("RGB", (40 + number, 40), shade).save(folder / name / f"{number}.jpg")
    return folder

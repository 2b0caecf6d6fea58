"""A curve in the terminal and as a picture."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from moxing.cli.curve import save_png, text_curve


def test_every_column_has_its_value():
    lines = text_curve(lambda count: np.linspace(1.0, 0.0, count), 27, 5, braille=False)
    signs = [line.split("|")[1] for line in lines]
    assert {column for line in signs for column, sign in enumerate(line) if sign == "*"} == set(range(len(signs[-1])))
    assert [line.split("|")[0].strip() for line in lines] == ["1", "0.75", "0.5", "0.25", "0"]


@pytest.mark.parametrize(("low", "high", "first"), [(0.0, 1.0, "0"), (0.4, 1.0, "0"), (0.9, 1.0, "0.9")])
def test_the_axis_starts_at_zero_if_the_values_come_near(low, high, first):
    lines = text_curve(lambda count: np.linspace(high, low, count), 40, 3, braille=False)
    assert lines[-1].split("|")[0].strip() == first


def test_a_picture_has_the_curve_from_the_upper_left_to_the_lower_right(tmp_path):
    save_png(str(tmp_path / "curve.png"), lambda count: np.linspace(1.0, 0.0, count), "end", "title", size=(300, 200))
    with Image.open(tmp_path / "curve.png") as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    blue = np.argwhere(pixels[..., 2] - pixels[..., 0] > 60)
    assert pixels.shape == (200, 300, 3)
    assert blue[blue[:, 1].argmin()][0] < 60 and blue[blue[:, 1].argmax()][0] > 140

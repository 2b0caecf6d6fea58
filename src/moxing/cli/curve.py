"""Draws a curve in the terminal and as a PNG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

#: Bits of the dots of a Braille character, by column and row.
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_BLANK_BRAILLE = 0x2800


def text_curve(values: Callable[[int], Sequence[float]], width: int, height: int, braille: bool) -> list[str]:
    """Returns the lines of a curve, with the labels of its axis on the left.

    Args:
      values: returns the given number of values, evenly spread over the curve.
      width: characters per line, the axis included.
      height: number of lines.
      braille: true for Braille characters, which have eight dots each; false for asterisks.

    Example:
      >>> for line in text_curve(lambda count: [index / (count - 1) for index in range(count)], 16, 3, braille=False):
      ...     print(line)
        1 |        ***
      0.5 |   *****
        0 |***
      >>> text_curve(lambda count: [0.5] * count, 13, 1, braille=True)
      ['0.5 ┤⣀⣀⣀⣀⣀⣀⣀⣀']
    """
    across, down = (2, 4) if braille else (1, 1)
    probe = values(256)
    low, high = _span(min(probe), max(probe))
    labels = _labels(low, high, height)
    margin = max(len(label) for label in labels)
    columns = max(width - margin - 2, 8)
    dots = height * down
    cells = [[0] * columns for _ in range(height)]
    previous: int | None = None
    for column, value in enumerate(values(columns * across)):
        row = dots - 1 if high == low else round((high - value) / (high - low) * (dots - 1))
        # Draw a jump as a vertical line.
        for step in range(
            min(row, row if previous is None else previous), max(row, row if previous is None else previous) + 1
        ):
            if step != previous or step == row:
                cells[step // down][column // across] |= _DOTS[column % across][step % down]
        previous = row
    character = (
        (lambda bits: chr(_BLANK_BRAILLE + bits) if bits else " ") if braille else (lambda bits: "*" if bits else " ")
    )
    axis = "┤" if braille else "|"
    return [
        f"{label.rjust(margin)} {axis}{''.join(map(character, row))}".rstrip()
        for label, row in zip(labels, cells, strict=True)
    ]


def save_png(
    path: str, values: Callable[[int], Sequence[float]], last: str, title: str, size: tuple[int, int] = (900, 480)
) -> None:
    """Writes the curve as a PNG picture.

    Args:
      path: path of the file.
      values: returns the given number of values, evenly spread over the curve.
      last: label at the right end of the lower axis.
      title: title above the curve.
      size: width and height in pixels.
    """
    from PIL import Image, ImageDraw, ImageFont

    # Draw at twice the size and scale down, for smooth lines.
    scale = 2
    width, height = size
    left, top, right, bottom = 80, 44, width - 24, height - 44
    picture = Image.new("RGB", (width * scale, height * scale), "white")
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(13 * scale)

    def write(x: float, y: float, text: str, anchor: str) -> None:
        draw.text((x * scale, y * scale), text, fill="#404040", font=font, anchor=anchor)

    points = values((right - left) * scale)
    low, high = _span(min(points), max(points))
    lines = 5
    for label, row in zip(_labels(low, high, lines), range(lines), strict=True):
        y = top + (bottom - top) * row / (lines - 1)
        draw.line([(left * scale, y * scale), (right * scale, y * scale)], fill="#e0e0e0", width=scale)
        write(left - 8, y, label, "rm")
    write(left, bottom + 10, "0", "mt")
    write(right, bottom + 10, last, "rt")
    write(left, top - 14, title, "ls")

    def y_of(value: float) -> float:
        share = 1.0 if high == low else (high - value) / (high - low)
        return (top + (bottom - top) * share) * scale

    draw.line(
        [(left * scale + x, y_of(value)) for x, value in enumerate(points)],
        fill="#1f6fb4",
        width=2 * scale,
        joint="curve",
    )
    picture.resize(size, Image.Resampling.LANCZOS).save(path, format="PNG")


def _span(low: float, high: float) -> tuple[float, float]:
    """Returns the range of the axis; it starts at 0 if the values come near it."""
    if low == high:
        return low, high
    return (0.0 if 0 <= low < high / 2 else low), high


def _labels(low: float, high: float, count: int) -> list[str]:
    """Returns the labels of the axis from the top, with as few digits as keep them different."""
    if low == high or count == 1:
        return [f"{high:.4g}"] + [""] * (count - 1) if low != high else [""] * (count - 1) + [f"{high:.4g}"]
    numbers = [high - (high - low) * row / (count - 1) for row in range(count)]
    digits = next((digits for digits in range(2, 8) if len({_short(number, digits) for number in numbers}) == count), 8)
    return [_short(number, digits) for number in numbers]


def _short(number: float, digits: int) -> str:
    return "0" if math.isclose(number, 0.0, abs_tol=1e-15) else f"{number:.{digits}g}"

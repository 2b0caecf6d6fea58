"""A client of the exported model, plain TensorFlow 2 without MoXing: `python predict.py MODEL_DIRECTORY DIGITS.npz`."""

from __future__ import annotations

import sys

import numpy as np

_INK = " .:-=+*#%@"
_DARKEST = 16


def picture(image: np.ndarray) -> list[str]:
    """Returns an 8 x 8 digit as eight lines of text, two characters per pixel.

    Args:
      image: brightness from 0 to 16.

    Example:
      >>> picture(np.array([[0, 16], [8, 0]]))
      ['  @@', '==  ']
    """
    levels = np.rint(np.asarray(image) * (len(_INK) - 1) / _DARKEST).astype(int)
    return ["".join(_INK[level] * 2 for level in row) for row in levels]


def side_by_side(columns: list[list[str]], gap: str = "  ") -> str:
    """Returns blocks of lines next to each other.

    Example:
      >>> print(side_by_side([['ab', 'cd'], ['1', '2']]))
      ab  1
      cd  2
    """
    widths = [max(map(len, column)) for column in columns]
    rows = zip(*columns, strict=True)
    return "\n".join(
        gap.join(line.ljust(width) for line, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def to_show(predicted: np.ndarray, labels: np.ndarray, count: int = 4) -> list[int]:
    """Returns the digits to show: one of each class that was predicted correctly, and the first wrong one.

    Example:
      >>> to_show(np.array([7, 7, 3, 9, 1]), np.array([7, 7, 3, 8, 1]), count=3)
      [0, 2, 3]
    """
    wrong = [int(index) for index in np.flatnonzero(predicted != labels)[:1]]
    _, first = np.unique(labels, return_index=True)
    right = [int(index) for index in sorted(first) if predicted[index] == labels[index]]
    return right[: count - len(wrong)] + wrong


def main(model_directory: str, digits_file: str) -> None:
    """Loads the model, predicts all digits of the file and shows a few.

    Args:
      model_directory: the directory of the exported model.
      digits_file: an `.npz` file with `images` and `labels`.
    """
    import tensorflow as tf

    predict = tf.saved_model.load(model_directory).signatures["predict_object"]
    with np.load(digits_file) as content:
        images, labels = content["images"], content["labels"]
    outputs = predict(images=tf.constant(images))
    predicted, probability = outputs["digit"].numpy(), outputs["probability"].numpy()

    columns = []
    for index in to_show(predicted, labels):
        caption = [f"predicted: {predicted[index]}  {probability[index]:.0%}", f"truth:     {labels[index]}"]
        columns.append([*picture(images[index]), "", *caption])
    print(side_by_side(columns))
    print(
        f"\nThe exported model predicts {int(np.sum(predicted == labels))} of {len(labels)} held-out digits correctly."
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

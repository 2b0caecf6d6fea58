"""A contact sheet: many samples in one picture, each as training sees it, decoded and augmented."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework.file.urls import Url
from moxing.framework.flags import FLAGS
from moxing.tensorflow.datasets.arguments import check_counts
from moxing.tensorflow.datasets.bad_samples import BadSampleLog, NoUsableSamplesError, open_bad_sample_log
from moxing.tensorflow.datasets.base_dataset import BaseDataset
from moxing.tensorflow.datasets.raw.raw_dataset import ImageClassificationRawDataset
from moxing.tensorflow.datasets.raw.raw_metadata import ImageClassificationRawMetadata
from moxing.tensorflow.datasets.tfrecord.tfrecord_image import ImageClassificationTFRecordDataset
from moxing.tensorflow.datasets.tfrecord.tfrecord_metadata import ImageClassificationTFRecordMetadata
from moxing.tensorflow.datasets.tools.inspection import find_record_pattern
from moxing.tensorflow.preprocessing import Augmentation, get_data_augmentation_fn

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

#: The edge of a tile for images that are not augmented.
_TILE = 160
#: The smallest edge of a tile: the class name must fit below it.
_MIN_TILE = 96
_CAPTION, _GAP, _FONT_SIZE = 18, 6, 12
_BACKGROUND, _TEXT = (32, 32, 32), (235, 235, 235)


class Sample(NamedTuple):
    """A sample of a dataset.

    Attributes:
      image: height x width x channels, of the type that training gets.
      label: the label.
      class_name: the name of the class; empty if it has none.
    """

    image: np.ndarray
    label: int
    class_name: str


def make_contact_sheet(
    directory: Url,
    pattern: str | None = None,
    augmentation: str | None = None,
    samples: int = 24,
    size: int | None = None,
    seed: int = 0,
) -> PillowImage:
    """Draws random samples of a dataset side by side, with their classes below them.

    The samples come from `ImageClassificationRawDataset` or `ImageClassificationTFRecordDataset`. Augmented values are
    scaled back to 0 to 255 for the picture, by the scale that the augmentation applies to black and white. If it scales
    every image individually, the picture spans from the smallest to the largest value of the image.

    Args:
      directory: as in `inspect_dataset`.
      pattern: as in `inspect_dataset`.
      augmentation: the name of a network, to apply the training form of its augmentation; None only decodes.
      samples: the number of samples.
      size: the edge of a tile. With an augmentation, its output size; None uses the default of the network.
      seed: determines which samples are drawn, and the random decisions of the augmentation.

    Raises:
      ValueError: the dataset cannot be trained on, or an argument is wrong.

    Example:
      >>> import tempfile
      >>> from PIL import Image
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     os.mkdir(folder + '/daisy')
      ...     Image.new('RGB', (8, 6)).save(folder + '/daisy/0.jpg')
      ...     make_contact_sheet(folder, size=100).size
      (112, 130)
    """
    check_counts(samples=samples, size=size)
    with tf.Graph().as_default():
        tf.set_random_seed(seed)
        augment = None
        tile = size or _TILE
        display: Callable[[np.ndarray], np.ndarray] = np.asarray
        if augmentation is not None:
            augment = get_data_augmentation_fn(augmentation, "TRAIN", size, size)
            tile = max(augment.output_height, augment.output_width)
            display = _inverse_scale(get_data_augmentation_fn(augmentation, "EVAL", size, size))
        with _allow_bad_samples(), open_bad_sample_log(None) as bad_samples:
            taken = list(_take(_open(directory, pattern, augment), samples, bad_samples))
    if not taken:
        raise ValueError(f"directory={os.fsdecode(directory)!r} has no image that can be decoded.")
    return draw_samples([sample._replace(image=display(sample.image)) for sample in taken], tile)


def draw_samples(samples: Sequence[Sample], tile: int) -> PillowImage:
    """Arranges images with values from 0 to 255 in rows, each scaled to fit into `tile` x `tile` pixels, at least 96.

    Example:
      >>> draw_samples([Sample(np.zeros([4, 4, 3], np.uint8), 0, 'daisy')] * 6, 100).size
      (324, 254)
    """
    from PIL import Image, ImageDraw

    edge = max(tile, _MIN_TILE)
    tiles = [_fitted(sample.image, edge) for sample in samples]
    # Wider than high, like a screen.
    columns = min(len(tiles), math.ceil(math.sqrt(1.5 * len(tiles))))
    rows = math.ceil(len(tiles) / columns)
    step_x, step_y = edge + _GAP, edge + _CAPTION + _GAP
    sheet = Image.new("RGB", (columns * step_x + _GAP, rows * step_y + _GAP), _BACKGROUND)
    pen = ImageDraw.Draw(sheet)
    for number, (sample, image) in enumerate(zip(samples, tiles, strict=True)):
        left, top = _GAP + number % columns * step_x, _GAP + number // columns * step_y
        sheet.paste(image, (left + (edge - image.width) // 2, top + (edge - image.height) // 2))
        _write_caption(pen, (left, top + edge + 2), f"{sample.label}: {sample.class_name}".rstrip(": "), edge)
    return sheet


def _open(directory: Url, pattern: str | None, augment: Augmentation | None) -> BaseDataset:
    patterns = find_record_pattern(directory) if pattern is None else pattern
    if patterns:
        records = ImageClassificationTFRecordMetadata(os.fsdecode(directory), patterns)
        return ImageClassificationTFRecordDataset(records, num_epochs=1, augmentation_fn=augment)
    return ImageClassificationRawDataset(
        ImageClassificationRawMetadata(directory), num_epochs=1, augmentation_fn=augment, capacity=64
    )


@contextmanager
def _allow_bad_samples() -> Iterator[None]:
    """Allows any number of bad samples. The report lists them; the picture shows the others."""
    before = FLAGS.get("max_bad_samples")
    FLAGS.set("max_bad_samples", "100%")
    try:
        yield
    finally:
        FLAGS.set("max_bad_samples", before)


def _take(dataset: BaseDataset, count: int, bad_samples: BadSampleLog) -> Iterator[Sample]:
    features = dataset.get(["image", "label", "label_desc"])
    with tf.Session() as session:
        for _ in range(count):
            try:
                image, label, name = session.run(features)
            except tf.errors.OutOfRangeError:
                return
            except tf.errors.InvalidArgumentError:
                if not isinstance(bad_samples.failure, NoUsableSamplesError):
                    raise
                return  # the caller reports it
            yield Sample(image, int(label), os.fsdecode(name))


def _inverse_scale(evaluate: Augmentation) -> Callable[[np.ndarray], np.ndarray]:
    """Returns a function that scales the output of an augmentation back to 0 to 255."""
    shape = [evaluate.output_height, evaluate.output_width, 3]
    with tf.Graph().as_default(), tf.Session() as session:
        ends = session.run([evaluate(tf.fill(shape, np.uint8(value))) for value in (0, 255)])
    middle = (evaluate.output_height // 2, evaluate.output_width // 2)
    black, white = (np.asarray(end[middle], np.float64) for end in ends)

    def display(image: np.ndarray) -> np.ndarray:
        low, high = (black, white) if np.all(white > black) else (image.min(), image.max())
        scaled = (image - low) * (255.0 / np.maximum(high - low, 1e-6))
        return np.clip(np.rint(scaled), 0, 255).astype(np.uint8)

    return display


def _fitted(image: np.ndarray, edge: int) -> PillowImage:
    from PIL import Image

    picture = Image.fromarray(image if image.shape[-1] == 3 else np.repeat(image, 3, axis=-1))
    if max(picture.size) > edge:
        picture.thumbnail((edge, edge))
    factor = edge // max(picture.size)
    if factor > 1:
        # Integer factors and no smoothing, to show every pixel that training sees.
        picture = picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)
    return picture


def _write_caption(pen: Any, corner: tuple[int, int], text: str, width: int) -> None:
    from PIL import ImageFont

    font = ImageFont.load_default(_FONT_SIZE)
    # A name may contain bytes that are not text, and line ends cannot be measured.
    text = " ".join(text.encode("utf-8", "replace").decode().split())
    shown = text
    while len(shown) > 1 and pen.textlength(shown, font=font) > width:
        text = text[:-1]
        shown = text + "..."
    pen.text(corner, shown, fill=_TEXT, font=font)

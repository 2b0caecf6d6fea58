"""A hand-written tf.data pipeline in TensorFlow 2: `textbook` or `fused`, over `jpeg` or `decoded` files.

`textbook` resizes the whole image, then crops it. `fused` chooses the crop first, decodes only its window and resizes
only that; the crop is the same except that its window is rounded to whole pixels. (`crop_and_resize` needs no rounding,
but takes twice as long as `resize` here.) With the third argument `memory`, reports memory after each epoch instead of
speed.
"""

from __future__ import annotations

import os

import numpy as np
import tensorflow as tf
from common import BATCH, LONGEST, MEANS, SHORTEST, SIDE, WARM_UP, arguments, listing, report, report_memory

# A constant in the shape of the image is cheaper to subtract than three broadcast values.
MEAN_PICTURE = np.tile(np.array(MEANS, np.float32), [SIDE, SIDE, 1])


def resize(image: tf.Tensor, size) -> tf.Tensor:
    return tf.image.resize(image, size, "bilinear")


def finish(image: tf.Tensor) -> tf.Tensor:
    """Flip half of the images and subtract the mean."""
    image = tf.cond(tf.random.uniform([]) < 0.5, lambda: image, lambda: tf.reverse(image, [1]))
    return tf.ensure_shape(image, [SIDE, SIDE, 3]) - MEAN_PICTURE


def textbook(image: tf.Tensor) -> tf.Tensor:
    size = tf.cast(tf.shape(image)[:2], tf.float32)
    side = tf.random.uniform([], SHORTEST, LONGEST + 1, tf.int32)
    scale = tf.cast(side, tf.float32) / tf.reduce_min(size)
    image = resize(image, tf.cast(tf.round(size * scale), tf.int32))
    return finish(tf.image.random_crop(image, [SIDE, SIDE, 3]))


def window(height: tf.Tensor, width: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Return top, left and side of the square that becomes the crop."""
    side = tf.random.uniform([], SHORTEST, LONGEST + 1, tf.int32)
    wanted = SIDE * tf.minimum(height, width) / side
    wanted = tf.cast(tf.round(wanted), tf.int32)
    top = tf.random.uniform([], 0, height - wanted + 1, tf.int32)
    return top, tf.random.uniform([], 0, width - wanted + 1, tf.int32), wanted


def textbook_jpeg(content: tf.Tensor) -> tf.Tensor:
    return textbook(tf.image.decode_jpeg(content, 3))


def fused_jpeg(content: tf.Tensor) -> tf.Tensor:
    height, width, _ = tf.unstack(tf.image.extract_jpeg_shape(content))
    top, left, side = window(height, width)
    return finish(resize(tf.image.decode_and_crop_jpeg(content, [top, left, side, side], 3), [SIDE, SIDE]))


def read_pixels(content: tf.Tensor) -> tf.Tensor:
    shape = tf.io.decode_raw(tf.strings.substr(content, 0, 8), tf.int32)
    return tf.reshape(tf.io.decode_raw(tf.strings.substr(content, 8, -1), tf.uint8), [shape[0], shape[1], 3])


def textbook_decoded(content: tf.Tensor) -> tf.Tensor:
    return textbook(read_pixels(content))


def fused_decoded(content: tf.Tensor) -> tf.Tensor:
    image = read_pixels(content)
    top, left, side = window(tf.shape(image)[0], tf.shape(image)[1])
    return finish(resize(image[top : top + side, left : left + side], [SIDE, SIDE]))


def pipeline(files: list[str], labels: list[int], augment) -> tf.data.Dataset:
    """Return batches of images, read and augmented in parallel, reshuffled every epoch."""
    options = tf.data.Options()
    options.deterministic = False
    options.threading.max_intra_op_parallelism = 1
    options.threading.private_threadpool_size = os.cpu_count()
    options.experimental_optimization.map_and_batch_fusion = True
    data = tf.data.Dataset.from_tensor_slices((files, labels)).shuffle(len(files)).repeat()
    data = data.map(lambda file, label: (augment(tf.io.read_file(file)), label), tf.data.AUTOTUNE)
    return data.batch(BATCH, drop_remainder=True).prefetch(2).with_options(options)


(style, kind, *rest), folder, images = arguments()
paths, numbers = listing(folder, kind)
augmentations = {
    "textbook jpeg": textbook_jpeg,
    "fused jpeg": fused_jpeg,
    "textbook decoded": textbook_decoded,
    "fused decoded": fused_decoded,
}
batches = iter(pipeline(paths, numbers, augmentations[f"{style} {kind}"]))
if rest == ["memory"]:
    report_memory(batches, len(paths))
else:
    report(batches, images, len(paths) if kind == "decoded" else WARM_UP)

"""The photos: one folder per class, split into training and validation, and how a photo becomes an input."""

import copy
import hashlib
import os
from typing import NamedTuple

import moxing.tensorflow as mox
import tensorflow.compat.v1 as tf


class Photos(NamedTuple):
    """The photos below a folder, in two parts. A part has `paths` and `labels`, see `split`."""

    class_names: list
    training: mox.ImageClassificationRawMetadata
    validation: mox.ImageClassificationRawMetadata


def load_photos(data_dir, validation_fraction):
    """Lists `data_dir/<class>/<photo>` and splits every class.

    Args:
      data_dir: the folder with one folder per class.
      validation_fraction: the share of every class that is not trained on.

    Raises:
      ValueError: there is no such folder, it has fewer than two classes, or a class has fewer than two photos.
    """
    try:
        metadata = mox.ImageClassificationRawMetadata(data_dir)
    except ValueError as error:
        raise ValueError(str(error).replace("base_dir", "--data_dir")) from None
    names = metadata.labels_list
    if len(names) < 2:
        raise ValueError(
            f"--data_dir={data_dir}: found one class only ({names[0]}); expected a folder for each of two or more."
        )
    small = [name for name, count in metadata.class_counts.items() if count < 2]
    if small:
        raise ValueError(
            f"--data_dir={data_dir}: one photo only in {', '.join(small)}; a class needs two or more, since one is "
            "used for validation."
        )
    training, validation = split(metadata, validation_fraction)
    return Photos(names, training, validation)


def split(metadata, validation_fraction):
    """Returns the training part and the validation part.

    Which part a photo belongs to depends on a hash of its class and its file name: it is the same in every run and on
    every machine. Every class has at least one photo in both parts.
    """
    base = metadata.base_dir.rstrip("/") + "/"
    hashes = [hashlib.sha256(os.fsencode(path.removeprefix(base))).digest() for path in metadata.paths]
    training, validation = [], []
    for label in range(metadata.num_classes):
        of_class = [number for number, other in enumerate(metadata.labels) if other == label]
        of_class.sort(key=lambda number: hashes[number])
        count = min(max(1, round(len(of_class) * validation_fraction)), len(of_class) - 1)
        validation += of_class[:count]
        training += of_class[count:]
    return _part(metadata, sorted(training)), _part(metadata, sorted(validation))


def _part(metadata, numbers):
    part = copy.copy(metadata)
    part.paths = [metadata.paths[number] for number in numbers]
    part.labels = metadata.labels[numbers]
    if metadata.objects is not None:
        part.objects = [metadata.objects[number] for number in numbers]
    return part


def decode(encoded):
    """Returns the pixels of a JPEG, PNG, GIF or BMP file: uint8, height x width x 3."""
    image = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    image.set_shape([None, None, 3])
    return image


def training_image(image, size):
    """Returns a random part of a photo, in half of the cases flipped: uint8, size x size x 3."""
    begin, shape, _ = tf.image.sample_distorted_bounding_box(
        tf.shape(image),
        bounding_boxes=tf.zeros([1, 0, 4]),
        min_object_covered=0.0,
        aspect_ratio_range=(0.75, 1.33),
        area_range=(0.4, 1.0),
        use_image_if_no_bounding_boxes=True,
    )
    return _resized(tf.image.random_flip_left_right(tf.slice(image, begin, shape)), size)


def centre_image(image, size):
    """Returns the largest square in the middle of a photo: uint8, size x size x 3. For validation and predictions."""
    height, width = tf.shape(image)[0], tf.shape(image)[1]
    side = tf.minimum(height, width)
    square = tf.slice(image, [(height - side) // 2, (width - side) // 2, 0], [side, side, 3])
    return _resized(square, size)


def _resized(image, size):
    image = tf.image.resize_images(image, [size, size])
    image.set_shape([size, size, 3])
    return tf.cast(tf.round(image), tf.uint8)

# -*- coding: utf-8 -*-
"""Preprocessing of a batch of images. Not published."""

import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_boolean('random_crop', True,
                     'Crop and flip at random in training, at the center otherwise.')
FLAGS = flags.FLAGS

# The mean of ImageNet, RGB.
_MEANS = [123.68, 116.78, 103.94]


def preprocess_images(images, size, is_training=False):
    """Crops images to `size` where they are larger, and subtracts the mean.

    Args:
        images: A 4-D tensor [batch_size, height, width, 3], values 0 to 255.
        size: Height and width of the crop.
        is_training: Whether to crop and flip at random.

    Returns:
        A 4-D float32 tensor.
    """
    images = tf.to_float(images)
    height = min(size, images.shape[1].value)
    width = min(size, images.shape[2].value)
    if is_training and FLAGS.random_crop:
        images = tf.map_fn(
            lambda image: tf.image.random_flip_left_right(
                tf.random_crop(image, [height, width, 3])), images)
    else:
        top = (images.shape[1].value - height) // 2
        left = (images.shape[2].value - width) // 2
        images = tf.image.crop_to_bounding_box(images, top, left, height, width)
    return images - tf.constant(_MEANS, tf.float32, [1, 1, 1, 3])

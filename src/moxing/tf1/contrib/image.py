"""`tf.contrib.image`: rotation, translation and projective transforms of images."""

from __future__ import annotations

from typing import Any

__path__: list[str] = []

__all__ = [
    "angles_to_projective_transforms",
    "rotate",
    "transform",
    "translate",
    "translations_to_projective_transforms",
]


def rotate(images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None) -> Any:
    """Rotates images about their center, counter-clockwise. Pixels from outside the image are 0.

    Args:
      images: [batch, height, width, channels], [height, width, channels] or [height, width].
      angles: in radians, one for all images or one per image.
      interpolation: `NEAREST` or `BILINEAR`.
      name: of the operation.
    """
    import tensorflow as tf

    with tf.name_scope(name or "rotate"):
        batch = _as_batch(tf.convert_to_tensor(images))
        height, width = tf.unstack(tf.cast(tf.shape(batch)[1:3], tf.float32))
        return transform(images, angles_to_projective_transforms(angles, height, width), interpolation)


def translate(images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None) -> Any:
    """Moves images by (dx, dy) pixels, one pair for all images or one per image. Pixels from outside are 0."""
    import tensorflow as tf

    with tf.name_scope(name or "translate"):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


def transform(images: Any, transforms: Any, interpolation: str = "NEAREST", name: str | None = None) -> Any:
    """Takes output pixel (x, y) from input pixel ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k).

    Args:
      images: [batch, height, width, channels], [height, width, channels] or [height, width].
      transforms: (a0, a1, a2, b0, b1, b2, c0, c1) with k = c0 x + c1 y + 1; one for all images or one per image.
      interpolation: `NEAREST` or `BILINEAR`.
      name: of the operation.
    """
    import tensorflow as tf

    if interpolation.upper() not in ("NEAREST", "BILINEAR"):
        raise ValueError(f"interpolation must be NEAREST or BILINEAR, got {interpolation!r}")
    with tf.name_scope(name or "transform"):
        images = tf.convert_to_tensor(images)
        batch = _as_batch(images)
        result = tf.raw_ops.ImageProjectiveTransformV3(
            images=batch,
            transforms=tf.reshape(tf.convert_to_tensor(transforms, tf.float32), [-1, 8]),
            output_shape=tf.shape(batch)[1:3],
            fill_value=0.0,
            interpolation=interpolation.upper(),
        )
        result = tf.reshape(result, tf.shape(images))
        result.set_shape(images.shape)
        return result


def angles_to_projective_transforms(angles: Any, image_height: Any, image_width: Any, name: str | None = None) -> Any:
    """Returns the transforms of `rotate`: [number of angles, 8]."""
    import tensorflow as tf

    with tf.name_scope(name or "angles_to_projective_transforms"):
        angles = tf.reshape(tf.convert_to_tensor(angles, tf.float32), [-1])
        # The center of rotation is between the first and the last pixel.
        x, y = (tf.cast(image_width, tf.float32) - 1) / 2, (tf.cast(image_height, tf.float32) - 1) / 2
        cos, sin = tf.cos(angles), tf.sin(angles)
        zero = tf.zeros_like(angles)
        return tf.stack([cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y, zero, zero], axis=1)


def translations_to_projective_transforms(translations: Any, name: str | None = None) -> Any:
    """Returns the transforms of `translate`: [number of translations, 8]."""
    import tensorflow as tf

    with tf.name_scope(name or "translations_to_projective_transforms"):
        moves = tf.reshape(tf.convert_to_tensor(translations, tf.float32), [-1, 2])
        one, zero = tf.ones_like(moves[:, 0]), tf.zeros_like(moves[:, 0])
        return tf.stack([one, zero, -moves[:, 0], zero, one, -moves[:, 1], zero, zero], axis=1)


def _as_batch(images: Any) -> Any:
    rank = images.shape.ndims
    if rank == 4:
        return images
    if rank == 3:
        return images[None]
    if rank == 2:
        return images[None, :, :, None]
    raise ValueError(f"images must have 2, 3 or 4 dimensions, got shape {images.shape}")


def __getattr__(name: str) -> Any:
    from moxing.tf1.contrib import _advice

    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(_advice.missing_name("image", name, __all__))

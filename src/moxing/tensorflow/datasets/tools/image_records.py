"""Converts the bytes of an image file to a record in the layout of TF-Slim.

Images are decoded by the same graph as in training: what is rejected here would be skipped there, and a converted image
has the pixels that training would see.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.dataset_utils import bytes_feature, int64_feature
from moxing.tensorflow.preprocessing.decoding import (
    decode_image,
    explain,
    image_format_and_size,
    pixel_limit,
    read_header,
)

_PNG_DEPTH, _PNG_COLOUR = 24, 25  # the positions of bit depth and colour type in a PNG
_GREY, _RGB, _PALETTE = 0, 2, 3  # colour types
_JPEG_QUALITY = 95


class BadImageError(ValueError):
    """An image that cannot be decoded; the message says why."""


@dataclass(frozen=True)
class StoredImage:
    """An image in the form in which it is stored in a record.

    Attributes:
      encoded: the bytes.
      format: `jpeg` or `png`.
      height: the height in pixels.
      width: the width in pixels.
      channels: 3, or 1 for a grey image that is stored unchanged.
      change: the conversion, such as `GIF to PNG`; None if the bytes are those of the file.
      kind: the format of the file, such as `CMYK JPEG`.
    """

    encoded: bytes
    format: str
    height: int
    width: int
    channels: int
    change: str | None
    kind: str


class ImageDecoder:
    """Decodes images as training does, outside a training graph. Any number of threads may use it.

    Example:
      >>> with ImageDecoder() as decoder:
      ...     decoder.fault(b'no image')
      "not an image: begins with b'no image'"
    """

    def __init__(self) -> None:
        self._limit = pixel_limit()
        with tf.Graph().as_default() as graph:
            encoded = tf.placeholder(tf.string, [])
            pixels = decode_image(encoded, 3, self._limit)
            header = read_header(encoded, self._limit)
            shape = tf.concat([tf.shape(pixels)[:2], [header.jpeg_components]], axis=0)
            png = tf.image.encode_png(pixels)
            self._session = tf.Session(graph=graph)
            self._shape = self._session.make_callable(shape, [encoded])
            self._size = self._session.make_callable([header.height, header.width], [encoded])
            self._pixels = self._session.make_callable(pixels, [encoded])
            self._png = self._session.make_callable(png, [encoded])

    def __enter__(self) -> ImageDecoder:
        return self

    def __exit__(self, *exception: object) -> None:
        self._session.close()

    def fault(self, encoded: bytes) -> str | None:
        """Returns why training would skip this image, or None if it would not."""
        try:
            self.shape(encoded)
        except BadImageError as error:
            return str(error)
        return None

    def shape(self, encoded: bytes) -> tuple[int, int, int]:
        """Decodes an image; returns height, width, and the colour components of a JPEG (0 for other formats)."""
        height, width, components = self._run(self._shape, encoded).tolist()
        return height, width, components

    def size(self, encoded: bytes) -> tuple[int, int]:
        """Returns height and width, from the header alone."""
        height, width = self._run(self._size, encoded)
        return int(height), int(width)

    def pixels(self, encoded: bytes) -> np.ndarray:
        """Returns the pixels, uint8 [height, width, 3]."""
        return self._run(self._pixels, encoded)

    def png(self, encoded: bytes) -> bytes:
        """Returns the same pixels as an 8-bit RGB PNG."""
        return self._run(self._png, encoded)

    def _run(self, function: Any, encoded: bytes) -> Any:
        try:
            return function(encoded)
        except tf.errors.OpError as error:
            reason = explain(encoded, self._limit)
            raise BadImageError(reason or f"TensorFlow cannot decode it: {error.message.splitlines()[0]}") from None


def store_image(encoded: bytes, decoder: ImageDecoder, resize_short_side: int | None = None) -> StoredImage:
    """Returns the form in which an image is stored in a record.

    JPEG (colour or grey) and PNG (8 bits, colour or grey, opaque) are stored unchanged, byte by byte. Everything else
    becomes a PNG with the pixels that training sees, because other readers support no other formats: CMYK JPEG, other
    kinds of PNG, GIF, BMP, WebP. A resized JPEG becomes a JPEG again, any other resized image a PNG.

    Args:
      encoded: the content of the file.
      decoder: decodes the image.
      resize_short_side: shrinks an image whose shorter side is longer than this; None never shrinks.

    Raises:
      BadImageError: the image cannot be decoded.

    Example:
      >>> from PIL import Image
      >>> stream = io.BytesIO()
      >>> Image.new('RGB', (30, 20)).save(stream, 'GIF')
      >>> with ImageDecoder() as decoder:
      ...     image = store_image(stream.getvalue(), decoder)
      >>> image.format, image.height, image.width, image.change
      ('png', 20, 30, 'GIF to PNG')
    """
    if resize_short_side is not None:
        height, width = decoder.size(encoded)
        if min(height, width) > resize_short_side:
            return _shrink(encoded, decoder, resize_short_side)
    height, width, components = decoder.shape(encoded)
    kind, channels = _kind_and_channels(encoded, components)
    if kind in ("JPEG", "PNG"):
        return StoredImage(encoded, kind.lower(), height, width, channels, None, kind)
    return StoredImage(decoder.png(encoded), "png", height, width, 3, f"{kind} to PNG", kind)


def image_record(image: StoredImage, label: int, class_name: str, path: str) -> bytes:
    """Returns the record of an image: a serialised `tf.train.Example` with the keys of TF-Slim's converters.

    Example:
      >>> image = StoredImage(b'...', 'jpeg', 20, 30, 3, None, 'JPEG')
      >>> example = tf.train.Example.FromString(image_record(image, 7, 'daisy', '/data/daisy/a.jpg'))
      >>> example.features.feature['image/filename'].bytes_list.value[0]
      b'a.jpg'
    """
    features = {
        "image/encoded": bytes_feature(image.encoded),
        "image/format": bytes_feature(image.format),
        "image/class/label": int64_feature(label),
        "image/class/text": bytes_feature(class_name),
        "image/filename": bytes_feature(os.path.basename(path)),
        "image/height": int64_feature(image.height),
        "image/width": int64_feature(image.width),
        "image/channels": int64_feature(image.channels),
        "image/colorspace": bytes_feature("RGB" if image.channels == 3 else "Grayscale"),
    }
    example = tf.train.Example(features=tf.train.Features(feature=features))
    # Deterministic, so that writing a file again gives the same bytes.
    return example.SerializeToString(deterministic=True)


def _kind_and_channels(encoded: bytes, components: int) -> tuple[str, int]:
    """Returns the format of an image and its channels. Only `JPEG` and `PNG` are stored unchanged."""
    if components:
        return ("CMYK JPEG", 3) if components == 4 else ("JPEG", components)
    kind, _, _ = image_format_and_size(encoded)
    return _png_kind(encoded) if kind == "PNG" else (kind, 3)


def _png_kind(encoded: bytes) -> tuple[str, int]:
    depth, colour = encoded[_PNG_DEPTH], encoded[_PNG_COLOUR]
    if colour == _PALETTE:
        return "palette PNG", 3
    if depth != 8:
        return f"{depth}-bit PNG", 3
    # The transparency of an image without an alpha channel is in a chunk before the pixels.
    if colour not in (_GREY, _RGB) or b"tRNS" in encoded[: encoded.find(b"IDAT")]:
        return "PNG with alpha", 3
    return "PNG", 1 if colour == _GREY else 3


def _shrink(encoded: bytes, decoder: ImageDecoder, short_side: int) -> StoredImage:
    from PIL import Image

    pixels = decoder.pixels(encoded)
    height, width = pixels.shape[:2]
    scale = short_side / min(height, width)
    size = (max(short_side, round(width * scale)), max(short_side, round(height * scale)))
    # Uses all source pixels, unlike the resizing of TensorFlow 1, so that the small image looks like the large one.
    smaller = Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    kind = image_format_and_size(encoded)[0]
    stored = "JPEG" if kind == "JPEG" else "PNG"
    stream = io.BytesIO()
    smaller.save(stream, stored, quality=_JPEG_QUALITY)
    return StoredImage(stream.getvalue(), stored.lower(), size[1], size[0], 3, f"{kind} resized, to {stored}", kind)

"""From the bytes of an image file to the record that TF-Slim's readers know.

The images are decoded by the graph that training decodes them with: what is refused here would be left out there, and
what is converted keeps the pixels that training would see.
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

_PNG_DEPTH, _PNG_COLOUR = 24, 25  # where bit depth and colour type stand in a PNG
_GREY, _RGB, _PALETTE = 0, 2, 3  # colour types
_JPEG_QUALITY = 95


class BadImageError(ValueError):
    """An image that cannot be decoded; the message says why."""


@dataclass(frozen=True)
class StoredImage:
    """An image as it goes into a record.

    Attributes:
      encoded: The bytes.
      format: `jpeg` or `png`.
      height: In pixels.
      width: In pixels.
      channels: 3, or 1 for a grey image that is kept.
      change: What was done, such as `GIF to PNG`; None if the bytes are those of the file.
      kind: What the file was, such as `CMYK JPEG`.
    """

    encoded: bytes
    format: str
    height: int
    width: int
    channels: int
    change: str | None
    kind: str


class ImageDecoder:
    """Decodes images as training does, outside a training graph; in as many threads at once as the caller has.

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
        """Why training would leave this image out; None if it would not."""
        try:
            self.shape(encoded)
        except BadImageError as error:
            return str(error)
        return None

    def shape(self, encoded: bytes) -> tuple[int, int, int]:
        """Decodes an image: its height, its width, and the colour components of a JPEG, 0 for other formats."""
        height, width, components = self._run(self._shape, encoded).tolist()
        return height, width, components

    def size(self, encoded: bytes) -> tuple[int, int]:
        """Height and width, from the header alone."""
        height, width = self._run(self._size, encoded)
        return int(height), int(width)

    def pixels(self, encoded: bytes) -> np.ndarray:
        """The pixels, uint8 [height, width, 3]."""
        return self._run(self._pixels, encoded)

    def png(self, encoded: bytes) -> bytes:
        """The same pixels as a PNG of 8 bits, RGB."""
        return self._run(self._png, encoded)

    def _run(self, function: Any, encoded: bytes) -> Any:
        try:
            return function(encoded)
        except tf.errors.OpError as error:
            reason = explain(encoded, self._limit)
            raise BadImageError(reason or f"TensorFlow cannot decode it: {error.message.splitlines()[0]}") from None


def store_image(encoded: bytes, decoder: ImageDecoder, resize_short_side: int | None = None) -> StoredImage:
    """The form in which an image goes into a record.

    JPEG (colour or grey) and PNG (8 bits, colour or grey, opaque) stay as they are, byte by byte. Everything else
    becomes a PNG with the pixels that training sees, because readers elsewhere know no other formats: CMYK JPEG, other
    kinds of PNG, GIF, BMP, WebP. A JPEG that is made smaller becomes a JPEG again, everything else that is a PNG.

    Args:
      encoded: The content of the file.
      decoder: Decodes it.
      resize_short_side: Makes an image whose shorter side is longer than this smaller; None: not.

    Raises:
      BadImageError: It cannot be decoded.

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
            return _made_smaller(encoded, decoder, resize_short_side)
    height, width, components = decoder.shape(encoded)
    kind, channels = _kind_and_channels(encoded, components)
    if kind in ("JPEG", "PNG"):
        return StoredImage(encoded, kind.lower(), height, width, channels, None, kind)
    return StoredImage(decoder.png(encoded), "png", height, width, 3, f"{kind} to PNG", kind)


def image_record(image: StoredImage, label: int, class_name: str, path: str) -> bytes:
    """The record of an image, under the keys of TF-Slim's converters: a serialised `tf.train.Example`.

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
    # Deterministic, so that a file that is written again is the same file.
    return example.SerializeToString(deterministic=True)


def _kind_and_channels(encoded: bytes, components: int) -> tuple[str, int]:
    """What a decodable image is, and its channels. Only the kinds `JPEG` and `PNG` may stay as they are."""
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
    # Transparency of an image without an alpha channel stands in a chunk before the pixels.
    if colour not in (_GREY, _RGB) or b"tRNS" in encoded[: encoded.find(b"IDAT")]:
        return "PNG with alpha", 3
    return "PNG", 1 if colour == _GREY else 3


def _made_smaller(encoded: bytes, decoder: ImageDecoder, short_side: int) -> StoredImage:
    from PIL import Image

    pixels = decoder.pixels(encoded)
    height, width = pixels.shape[:2]
    scale = short_side / min(height, width)
    size = (max(short_side, round(width * scale)), max(short_side, round(height * scale)))
    # All source pixels count, unlike in TensorFlow 1's resizing: a small image is to look like the large one.
    smaller = Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    kind = image_format_and_size(encoded)[0]
    stored = "JPEG" if kind == "JPEG" else "PNG"
    stream = io.BytesIO()
    smaller.save(stream, stored, quality=_JPEG_QUALITY)
    return StoredImage(
        stream.getvalue(), stored.lower(), size[1], size[0], 3, f"{kind} made smaller, to {stored}", kind
    )

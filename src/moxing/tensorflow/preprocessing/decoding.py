"""Decodes images (JPEG, PNG, GIF, BMP, WebP) in the graph, one image per call.

The content determines the format of an image, never its name. TensorFlow's operations decode JPEG and PNG. Pillow
decodes the others, because TensorFlow's operations are wrong on common files: GIF frames smaller than the canvas or
with transparent pixels, BMP with a palette, WebP with an alpha channel or an animation.

For all formats: alpha is dropped, not blended; an animation gives its first frame; 16 bits give the upper 8; the EXIF
orientation is not applied. JPEG gives the pixels of `tf.image.decode_jpeg` with its defaults.
"""

from __future__ import annotations

import io
import zlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.framework.flags import FLAGS

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

#: The transform of libjpeg that Pillow and most other decoders use. TensorFlow's default differs by up to 20 of 255 in
#: photos, and is not faster.
_TRANSFORM = "INTEGER_ACCURATE"
_JPEG = b"\xff\xd8\xff"
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_HEADER = b"\0\0\0\x0dIHDR"  # length and name of the first chunk; width and height follow
_SUPPORTED = "JPEG, PNG, GIF, BMP and WebP"
#: Position and signature of other formats that are found in image folders, to name them in a report.
_UNSUPPORTED = ((0, b"II*\0", "TIFF"), (0, b"MM\0*", "TIFF"), (4, b"ftyp", "HEIC, AVIF or video"), (0, b"%PDF", "PDF"))


class Header(NamedTuple):
    """The header of an encoded image; int32 scalars."""

    height: tf.Tensor
    width: tf.Tensor
    jpeg_components: tf.Tensor
    """Colour components of a JPEG: 1, 3 or 4 (CMYK); 0 for every other format."""


# --- in the graph -----------------------------------------------------------------------------------------------------


def decode_image(encoded: tf.Tensor, channels: int = 3, max_pixels: int | None = None) -> tf.Tensor:
    """Decodes one image.

    Fails with `InvalidArgumentError` for bytes that are not an image or a truncated one, and for an image that claims
    more than `max_pixels`, before memory is allocated for it.

    Args:
      encoded: a scalar string tensor, the whole file.
      channels: 3 for RGB, 1 for grey.
      max_pixels: the largest width x height; None uses the flag `max_image_pixels` when the graph is built.

    Returns:
      A uint8 tensor [height, width, channels].

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     grey = tf.image.encode_png(tf.constant([[[7], [8]]], tf.uint8))
      ...     session.run(decode_image(grey)).tolist()
      [[[7, 7, 7], [8, 8, 8]]]
    """
    encoded = check_arguments(encoded, channels)
    limit = pixel_limit(max_pixels)

    def jpeg() -> tf.Tensor:
        header = _jpeg_header(encoded, limit)
        with tf.control_dependencies([header.height]):
            return decode_jpeg(encoded, channels, header.jpeg_components)

    def other() -> tf.Tensor:
        return decode_other(encoded, channels, limit)

    return tf.cond(is_jpeg(encoded), jpeg, other)


def check_arguments(encoded: tf.Tensor, channels: int) -> tf.Tensor:
    """Converts `encoded` to a tensor; raises ValueError if it is not a scalar string or `channels` is not 1 or 3."""
    encoded = tf.convert_to_tensor(encoded)
    if encoded.dtype != tf.string or encoded.shape.rank not in (0, None):
        raise ValueError(f"encoded={encoded!r}: expected a scalar string tensor, the bytes of one image.")
    if channels not in (1, 3):
        raise ValueError(f"channels={channels!r}: expected 3 (RGB) or 1 (grey).")
    return encoded


def pixel_limit(max_pixels: int | None = None) -> int:
    """Returns `max_pixels`, or the flag `max_image_pixels` if it is None.

    Example:
      >>> pixel_limit(1000)
      1000
    """
    name, limit = "max_pixels", max_pixels
    if limit is None:
        name, limit = "--max_image_pixels", FLAGS.get("max_image_pixels")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ValueError(f"{name}={limit!r}: expected a positive whole number, the largest width x height.")
    return limit


def is_jpeg(encoded: tf.Tensor) -> tf.Tensor:
    """Returns whether the bytes begin like a JPEG: a bool scalar."""
    return tf.equal(tf.strings.substr(encoded, 0, len(_JPEG)), _JPEG)


def is_jpeg_complete(encoded: tf.Tensor) -> tf.Tensor:
    """Returns whether the bytes end like a JPEG: a bool scalar. Some valid JPEGs have other bytes after their end."""
    return tf.equal(tf.strings.substr(encoded, tf.maximum(tf.strings.length(encoded) - 2, 0), 2), b"\xff\xd9")


def read_header(encoded: tf.Tensor, limit: int) -> Header:
    """Returns the header of an encoded image; fails at run time if it has more than `limit` pixels."""
    fields = tf.cond(
        is_jpeg(encoded), lambda: _jpeg_header(encoded, limit), lambda: _other_header(encoded, limit), strict=True
    )
    return Header(*fields)


def decode_jpeg(
    encoded: tf.Tensor, channels: int, components: tf.Tensor, crop: tf.Tensor | None = None, ratio: int = 1
) -> tf.Tensor:
    """Decodes a JPEG, or the window `crop` = [top, left, height, width] of it, at the scale 1 / `ratio` (1, 2, 4 or 8).

    `crop` is in pixels of the scaled image.
    """

    def decode(channels: int) -> tf.Tensor:
        if crop is None:
            return tf.raw_ops.DecodeJpeg(contents=encoded, channels=channels, ratio=ratio, dct_method=_TRANSFORM)
        return tf.raw_ops.DecodeAndCropJpeg(
            contents=encoded, crop_window=crop, channels=channels, ratio=ratio, dct_method=_TRANSFORM
        )

    if channels == 3:
        return decode(3)
    # libjpeg converts every colour space but CMYK to grey.
    return tf.cond(tf.equal(components, 4), lambda: _grey(decode(3)), lambda: decode(1))


def decode_other(encoded: tf.Tensor, channels: int, limit: int) -> tf.Tensor:
    """Decodes an image that is not a JPEG."""

    def png() -> tf.Tensor:
        with tf.control_dependencies([_png_header(encoded, limit).height]):
            return tf.image.decode_png(encoded, channels)

    def pillow() -> tf.Tensor:
        image = tf.numpy_function(_pillow_pixels, [encoded, channels, np.int64(limit)], tf.uint8, stateful=False)
        image.set_shape([None, None, channels])
        return image

    return tf.cond(_is_png(encoded), png, pillow)


def _is_png(encoded: tf.Tensor) -> tf.Tensor:
    # Pillow decodes a PNG that ends before its size: substr would put the bytes into its error message, which becomes
    # a UnicodeDecodeError in Python.
    begins = _PNG + _PNG_HEADER
    return tf.equal(tf.strings.substr(encoded, 0, len(begins)), begins)


def _jpeg_header(encoded: tf.Tensor, limit: int) -> Header:
    height, width, components = tf.unstack(tf.image.extract_jpeg_shape(encoded), num=3)
    return _within_limit("JPEG", Header(height, width, components), limit)


def _png_header(encoded: tf.Tensor, limit: int) -> Header:
    size = tf.io.decode_raw(tf.strings.substr(encoded, len(_PNG + _PNG_HEADER), 8), tf.int32, little_endian=False)
    return _within_limit("PNG", Header(size[1], size[0], tf.constant(0)), limit)


def _other_header(encoded: tf.Tensor, limit: int) -> Header:
    def pillow() -> Header:
        size = tf.numpy_function(_pillow_size, [encoded, np.int64(limit)], tf.int32, stateful=False)
        size.set_shape([2])
        return Header(size[0], size[1], tf.constant(0))

    return Header(*tf.cond(_is_png(encoded), lambda: _png_header(encoded, limit), pillow, strict=True))


def _within_limit(kind: str, header: Header, limit: int) -> Header:
    """Returns `header`, which is available only after the check."""
    pixels = tf.cast(header.height, tf.int64) * tf.cast(header.width, tf.int64)
    # The raw operation: tf.Assert adds a cond, which costs more than everything else here.
    check = tf.raw_ops.Assert(
        condition=pixels <= limit,
        data=[f"{kind} of more than --max_image_pixels={limit} pixels; width:", header.width, "height:", header.height],
        summarize=3,
    )
    with tf.control_dependencies([check]):
        return Header(*(tf.identity(field) for field in header))


def _grey(image: tf.Tensor) -> tf.Tensor:
    """Returns the luma (ITU-R 601) of an RGB image, rounded as in libjpeg and Pillow."""
    weights = tf.constant([19595, 38470, 7471])
    luma = tf.reduce_sum(tf.cast(image, tf.int32) * weights, axis=-1, keepdims=True)
    return tf.cast(tf.bitwise.right_shift(luma + (1 << 15), 16), tf.uint8)


# --- in plain Python --------------------------------------------------------------------------------------------------


def explain(encoded: bytes, max_pixels: int | None = None) -> str | None:
    """Returns in a few words why these bytes cannot be decoded, or None if they can.

    Decodes the image with Pillow. `max_pixels` is as in `decode_image`.

    Example:
      >>> explain(b'<html><body>404</body></html>')
      "not an image: begins with b'<html><body>404<'"
    """
    try:
        _pillow_pixels(encoded, 3, pixel_limit(max_pixels))
    except ValueError as error:
        return str(error)
    return None


def image_format_and_size(encoded: bytes) -> tuple[str, int, int]:
    """Returns format, width and height from the header of an image; raises `ValueError` with the reason if it fails.

    Example:
      >>> import io
      >>> from PIL import Image
      >>> file = io.BytesIO()
      >>> Image.new('RGB', (640, 480)).save(file, 'WEBP')
      >>> image_format_and_size(file.getvalue())
      ('WebP', 640, 480)
    """
    kind = _kind(encoded)
    width, height = _open(encoded, kind).size
    return kind, width, height


def _pillow_size(encoded: bytes, limit: int) -> np.ndarray:
    """Returns height and width."""
    width, height = _open_within_limit(encoded, _kind(encoded), limit).size
    return np.array([height, width], np.int32)


def _pillow_pixels(encoded: bytes, channels: int, limit: int) -> np.ndarray:
    kind = _kind(encoded)
    image = _open_within_limit(encoded, kind, limit)
    try:
        image.load()
        # Convert to grey via RGB, so that one channel follows the same rules as three.
        pixels = np.asarray(image.convert("RGB") if channels == 3 else image.convert("RGB").convert("L"))
    except Exception as error:  # Pillow's decoders raise many kinds of errors for broken bytes
        raise ValueError(f"{kind}, {image.width}x{image.height}, {_reason(error)}") from None
    if kind == "PNG" and (fault := _png_fault(encoded)):
        raise ValueError(f"{kind}, {image.width}x{image.height}, {fault}")
    return pixels.reshape(*pixels.shape[:2], channels)


def _kind(encoded: bytes) -> str:
    """Returns the format by the first bytes."""
    for kind, begins in (("JPEG", _JPEG), ("PNG", _PNG), ("GIF", (b"GIF87a", b"GIF89a")), ("BMP", b"BM")):
        if encoded.startswith(begins):
            return kind
    if encoded[:4] == b"RIFF" and encoded[8:12] == b"WEBP":
        return "WebP"
    if not encoded:
        raise ValueError("empty file")
    if not encoded.strip(b"\0"):
        raise ValueError("not an image: only zero bytes")
    for start, begins, kind in _UNSUPPORTED:
        if encoded.startswith(begins, start):
            raise ValueError(f"{kind} file: expected {_SUPPORTED}")
    raise ValueError(f"not an image: begins with {encoded[:16]!r}")


def _open_within_limit(encoded: bytes, kind: str, limit: int) -> ImageFile:
    image = _open(encoded, kind)
    if image.width * image.height > limit:
        raise ValueError(f"{kind} claims {image.width}x{image.height} pixels, more than --max_image_pixels={limit}")
    return image


def _open(encoded: bytes, kind: str) -> ImageFile:
    """Opens the image and reads its header, without decoding.

    Not `Image.open`: it has its own limit of pixels, a global variable that belongs to the user.
    """
    from PIL import BmpImagePlugin, GifImagePlugin, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

    classes: dict[str, type[ImageFile]] = {
        "BMP": BmpImagePlugin.BmpImageFile,
        "GIF": GifImagePlugin.GifImageFile,
        "JPEG": JpegImagePlugin.JpegImageFile,
        "PNG": PngImagePlugin.PngImageFile,
        "WebP": WebPImagePlugin.WebPImageFile,
    }
    if kind == "WebP" and len(encoded) < int.from_bytes(encoded[4:8], "little") + 8:
        raise ValueError("WebP, truncated")
    try:
        return classes[kind](io.BytesIO(encoded))
    except Exception as error:  # as for decoding
        raise ValueError(f"{kind}, header {_reason(error)}") from None


def _reason(error: Exception) -> str:
    text = str(error)
    return "truncated" if "truncated" in text.lower() else f"broken ({text or type(error).__name__})"


def _png_fault(encoded: bytes) -> str | None:
    """Returns what TensorFlow rejects in a PNG and Pillow ignores: a missing end, a wrong checksum."""
    position = len(_PNG)
    while position < len(encoded):
        length, name = int.from_bytes(encoded[position : position + 4]), encoded[position + 4 : position + 8]
        end = position + 8 + length
        if end + 4 > len(encoded):
            break
        # A chunk whose name begins with a lower-case letter is optional.
        if name[:1].isupper() and zlib.crc32(encoded[position + 4 : end]) != int.from_bytes(encoded[end : end + 4]):
            return f"broken (checksum of {name!r})"
        if name == b"IEND":
            return None
        position = end + 4
    return "truncated"

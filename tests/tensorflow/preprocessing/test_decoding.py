"""Image bytes to pixels: every format against Pillow, broken files, and the limit of pixels."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from PIL import Image

from moxing.framework.flags import FLAGS
from moxing.tensorflow.preprocessing import decoding

ROWS, COLUMNS = np.mgrid[0:61, 0:83]
RGB = Image.fromarray(np.stack([COLUMNS * 3, ROWS * 4, (COLUMNS + ROWS) * 7 // 4], axis=-1).astype(np.uint8))
GREY = RGB.convert("L")
PALETTE = RGB.quantize(200)
ALPHA = Image.fromarray((ROWS * COLUMNS % 256).astype(np.uint8))
RGBA, GREY_ALPHA = RGB.copy(), GREY.copy()
RGBA.putalpha(ALPHA)
GREY_ALPHA.putalpha(ALPHA)
UPSIDE_DOWN = RGB.rotate(180)


def encode(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width: int, height: int, depth: int, colour: int, rows: list[bytes], interlaced: bool = False) -> bytes:
    """A PNG that Pillow cannot write: `rows` are packed as the format wants them."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def interlaced_png(image: Image.Image) -> bytes:
    pixels = np.asarray(image)
    passes = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
    rows = [row.tobytes() for top, left, down, right in passes for row in pixels[top::down, left::right]]
    return png(image.width, image.height, 8, 2, rows, interlaced=True)


def gif_with_smaller_frame() -> bytes:
    """A frame of 30 x 20 at (5, 7) on a canvas of 60 x 50."""
    gif = bytearray(encode(RGB.crop((0, 0, 30, 20)).quantize(16), "GIF"))
    struct.pack_into("<HH", gif, 6, 60, 50)
    struct.pack_into("<HH", gif, gif.index(b",\0\0\0\0") + 1, 5, 7)
    return bytes(gif)


def patched_adobe(transform: int) -> bytes:
    """A CMYK JPEG whose Adobe marker says what its components are: 0 CMYK, 2 YCCK."""
    jpeg = bytearray(encode(RGB.convert("CMYK"), "JPEG", quality=90))
    jpeg[jpeg.index(b"Adobe") + 11] = transform
    return bytes(jpeg)


def without_adobe() -> bytes:
    """The same numbers without the marker: by the standard they are ink, not light."""
    jpeg = patched_adobe(0)
    start = jpeg.index(b"Adobe")
    return jpeg[: start - 4] + jpeg[start + 12 :]


JPEG_TOLERANCE = 4
RANDOM = np.random.default_rng(0)
WIDE = {channels: RANDOM.integers(0, 65536, (6, 7, channels)).astype(">u2") for channels in (1, 2, 3, 4)}

EXACT = {
    "PNG RGB": encode(RGB, "PNG"),
    "PNG grey": encode(GREY, "PNG"),
    "PNG palette": encode(PALETTE, "PNG"),
    "PNG palette, transparent colour": encode(PALETTE, "PNG", transparency=3),
    "PNG palette, 4 bit": encode(RGB.quantize(16), "PNG", bits=4),
    "PNG palette, 2 bit": encode(RGB.quantize(4), "PNG", bits=2),
    "PNG palette, 1 bit": encode(RGB.quantize(2), "PNG", bits=1),
    "PNG black and white": encode(GREY.convert("1"), "PNG"),
    "PNG grey, 2 bit": png(20, 4, 2, 0, [bytes(RANDOM.integers(0, 256, 5, np.uint8)) for _ in range(4)]),
    "PNG grey, 4 bit": png(10, 4, 4, 0, [bytes(RANDOM.integers(0, 256, 5, np.uint8)) for _ in range(4)]),
    "PNG RGBA": encode(RGBA, "PNG"),
    "PNG grey and alpha": encode(GREY_ALPHA, "PNG"),
    "PNG interlaced": interlaced_png(RGB),
    "PNG RGB, 16 bit": png(7, 6, 16, 2, [row.tobytes() for row in WIDE[3]]),
    "PNG RGBA, 16 bit": png(7, 6, 16, 6, [row.tobytes() for row in WIDE[4]]),
    "GIF": encode(PALETTE, "GIF", interlace=0),
    "GIF interlaced": encode(PALETTE, "GIF", interlace=1),
    "GIF grey": encode(GREY, "GIF"),
    "GIF transparent colour": encode(PALETTE, "GIF", transparency=3),
    "GIF animated": encode(PALETTE, "GIF", save_all=True, append_images=[UPSIDE_DOWN.quantize(64)]),
    "GIF frame smaller than its canvas": gif_with_smaller_frame(),
    "BMP 24 bit": encode(RGB, "BMP"),
    "BMP 32 bit": encode(RGBA, "BMP"),
    "BMP palette": encode(PALETTE, "BMP"),
    "BMP grey": encode(GREY, "BMP"),
    "BMP black and white": encode(GREY.convert("1"), "BMP"),
    "WebP lossy": encode(RGB, "WEBP", quality=80),
    "WebP lossless": encode(RGB, "WEBP", lossless=True),
    "WebP lossy, alpha": encode(RGBA, "WEBP", quality=80, exact=True),
    "WebP lossless, alpha": encode(RGBA, "WEBP", lossless=True, exact=True),
    "WebP animated": encode(RGB, "WEBP", save_all=True, append_images=[UPSIDE_DOWN], lossless=True),
}
JPEGS = {
    "baseline": encode(RGB, "JPEG", quality=90),
    "4:4:4": encode(RGB, "JPEG", quality=90, subsampling=0),
    "4:2:2": encode(RGB, "JPEG", quality=90, subsampling=1),
    "progressive": encode(RGB, "JPEG", quality=90, progressive=True),
    "grey": encode(GREY, "JPEG", quality=90),
    "CMYK": patched_adobe(0),
    "YCCK": patched_adobe(2),
}
HTML = b"<html><body>404 Not Found</body></html>"
CUTS = {
    f"{name}, cut to {part} of its length": encoded[: int(len(encoded) * part)]
    for name, encoded in {**EXACT, **JPEGS}.items()
    for part in (0.1, 0.2, 0.5, 0.85)
    if name != "GIF animated"
}
HUGE_PNG = png(60_000, 60_000, 8, 2, [b"\0" * 100])
NO_IMAGES = {
    "empty": b"",
    "one byte": b"\xff",
    "zero bytes": bytes(5000),
    "random": bytes(RANDOM.integers(0, 256, 5000, np.uint8)),
    "html": HTML,
    "text": "label: Möwe\n".encode(),
    "JPEG, first bytes": b"\xff\xd8\xff",
    "JPEG, then random": b"\xff\xd8\xff\xe0" + bytes(RANDOM.integers(0, 256, 500, np.uint8)),
    "PNG, signature": b"\x89PNG\r\n\x1a\n",
    **{f"PNG, {length} bytes": encode(RGB, "PNG")[:length] for length in (15, 16, 19, 20, 23, 24, 33)},
    "PNG without its end": EXACT["PNG RGB"][:-12],
    "PNG, pixels changed": EXACT["PNG RGB"][:200] + bytes(20) + EXACT["PNG RGB"][220:],
    "GIF, first bytes": b"GIF89a",
    "BMP, first bytes": b"BM",
    "WebP, first bytes": b"RIFF\x10\0\0\0WEBP",
    "TIFF": encode(RGB, "TIFF"),
}


def by_pillow(encoded: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(encoded)).convert("RGB"))


class Decoder:
    """Runs `decode_image` in a dataset; one graph and session for the same options."""

    def __init__(self, parallel: int = 1, **options: Any) -> None:
        with tf.Graph().as_default():
            self._encoded = tf.placeholder(tf.string, [None])
            images = tf.data.Dataset.from_tensor_slices(self._encoded).map(
                lambda one: decoding.decode_image(one, **options), num_parallel_calls=parallel
            )
            self._iterator = tf.data.make_initializable_iterator(images)
            self._image = self._iterator.get_next()
            assert self._image.dtype == tf.uint8
            assert self._image.shape.as_list() == [None, None, options.get("channels", 3)]
            self.session = tf.Session()

    def start(self, encoded: list[bytes]) -> None:
        self.session.run(self._iterator.initializer, {self._encoded: encoded})

    def next(self) -> np.ndarray:
        return self.session.run(self._image)

    def __call__(self, encoded: bytes) -> np.ndarray:
        self.start([encoded])
        return self.next()


@pytest.fixture(scope="module")
def decode():
    """decode(encoded, channels=, max_pixels=): the pixels."""
    decoders: dict[tuple, Decoder] = {}

    def decode_one(encoded: bytes, **options: Any) -> np.ndarray:
        key = tuple(options.items())
        if key not in decoders:
            decoders[key] = Decoder(**options)
        return decoders[key](encoded)

    yield decode_one
    for decoder in decoders.values():
        decoder.session.close()


@pytest.fixture
def decoder():
    """A dataset that decodes four images at once."""
    decoder = Decoder(parallel=4)
    yield decoder
    decoder.session.close()


def difference(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    assert left.shape == right.shape
    return np.abs(left.astype(int) - right.astype(int))


# --- pixels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXACT)
def test_same_pixels_as_pillow(decode, name):
    expected = by_pillow(EXACT[name])
    assert expected.std() > 10
    np.testing.assert_array_equal(decode(EXACT[name]), expected)
    grey = np.asarray(Image.fromarray(expected).convert("L"))[..., np.newaxis]
    assert difference(decode(EXACT[name], channels=1), grey).max() <= 1


@pytest.mark.parametrize(("channels", "colour"), [(1, 0), (2, 4)])
def test_of_16_bit_grey_the_upper_8_bits(decode, channels, colour):
    """Not compared with Pillow, which clips such images to 255."""
    encoded = png(7, 6, 16, colour, [row.tobytes() for row in WIDE[channels]])
    np.testing.assert_array_equal(decode(encoded, channels=1), WIDE[channels][..., :1] >> 8)
    np.testing.assert_array_equal(decode(encoded), np.repeat(WIDE[channels][..., :1] >> 8, 3, axis=-1))


@pytest.mark.parametrize("name", JPEGS)
def test_jpeg(decode, name):
    image = decode(JPEGS[name])
    np.testing.assert_array_equal(image, by_pillow(JPEGS[name]))
    grey = np.asarray(Image.fromarray(image).convert("L"))[..., np.newaxis]
    assert difference(decode(JPEGS[name], channels=1), grey).mean() < 2


def test_cmyk_without_adobe_marker_is_ink(decode):
    """Pillow takes every CMYK file for an inverted one, as only Adobe writes them."""
    light = 255 - np.asarray(Image.open(io.BytesIO(without_adobe()))).astype(int)  # Pillow undoes an inversion
    expected = (255 - light[..., :3]) * (255 - light[..., 3:]) // 255
    assert difference(decode(without_adobe()), expected).mean() < 2


def test_all_formats_in_one_parallel_data_set(decoder):
    encoded = [*EXACT.values(), *JPEGS.values()] * 2
    decoder.start(encoded)
    for one in encoded:
        assert difference(decoder.next(), by_pillow(one)).mean() < 2
    with pytest.raises(tf.errors.OutOfRangeError):
        decoder.next()


@pytest.mark.realdata
def test_photos(real_data, decode):
    files = sorted(real_data.glob("flowers/*/*.jpg"))[::100]
    assert files
    for photo in (file.read_bytes() for file in files):
        assert decoding.explain(photo) is None
        assert difference(decode(photo), by_pillow(photo)).mean() < 1.5


# --- what is no image -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NO_IMAGES)
def test_no_image_fails_and_is_explained(decode, name):
    with pytest.raises(tf.errors.InvalidArgumentError):
        decode(NO_IMAGES[name])
    assert decoding.explain(NO_IMAGES[name])


def test_truncated_images_fail_and_are_explained(decoder):
    """After an error the dataset goes on with the next sample, so that a reader can skip bad ones."""
    decoder.start([*CUTS.values(), JPEGS["baseline"]])
    for name, encoded in CUTS.items():
        with pytest.raises(tf.errors.InvalidArgumentError):
            decoder.next()
            pytest.fail(f"{name} was decoded")
        assert decoding.explain(encoded), name
    assert decoder.next().shape == (61, 83, 3)


def test_of_an_animation_only_the_first_frame_must_be_there(decode):
    encoded = EXACT["GIF animated"]
    np.testing.assert_array_equal(decode(encoded[: len(encoded) * 6 // 7]), decode(encoded))
    assert decoding.explain(encoded[: len(encoded) * 6 // 7]) is None


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        (b"", "empty file"),
        (bytes(100), "not an image: only zero bytes"),
        (HTML, "not an image: begins with b'<html><body>404 '"),
        (JPEGS["baseline"][:-100], "JPEG, 83x61, truncated"),
        (JPEGS["baseline"][:30], "JPEG, header truncated"),
        (EXACT["PNG RGB"][:-12], "PNG, 83x61, truncated"),
        (EXACT["WebP lossy"][:-1], "WebP, truncated"),
        (EXACT["BMP 24 bit"][:-99], "BMP, 83x61, truncated"),
        (HUGE_PNG, "PNG claims 60000x60000 pixels, more than --max_image_pixels=178000000"),
        (NO_IMAGES["TIFF"], "TIFF file: expected JPEG, PNG, GIF, BMP and WebP"),
    ],
)
def test_explanation(encoded, expected):
    assert decoding.explain(encoded) == expected


@pytest.mark.parametrize("name", [*EXACT, *JPEGS])
def test_good_images_need_no_explanation(name):
    assert decoding.explain({**EXACT, **JPEGS}[name]) is None


def test_bytes_after_the_image_do_no_harm(decode):
    for encoded in (EXACT["PNG RGB"], JPEGS["baseline"]):
        np.testing.assert_array_equal(decode(encoded + b"trailer" * 9), decode(encoded))
        assert decoding.explain(encoded + b"trailer" * 9) is None


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        (JPEGS["progressive"], ("JPEG", 83, 61)),
        (EXACT["PNG palette"], ("PNG", 83, 61)),
        (gif_with_smaller_frame(), ("GIF", 60, 50)),
        (EXACT["BMP 24 bit"], ("BMP", 83, 61)),
        (EXACT["WebP lossy"], ("WebP", 83, 61)),
        (HUGE_PNG, ("PNG", 60_000, 60_000)),
        (JPEGS["baseline"][:700], ("JPEG", 83, 61)),  # the header is there
    ],
)
def test_format_and_size(encoded, expected):
    assert decoding.image_format_and_size(encoded) == expected


def test_no_format_and_size():
    with pytest.raises(ValueError, match="not an image: begins with b'<html"):
        decoding.image_format_and_size(HTML)


# --- the limit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "encoded", [JPEGS["baseline"], *(EXACT[name] for name in ("PNG RGB", "GIF", "BMP 24 bit", "WebP lossy"))]
)
def test_more_pixels_than_allowed(decode, encoded):
    assert decode(encoded, max_pixels=83 * 61).shape == (61, 83, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="(?s)max_image_pixels=5062") as caught:
        decode(encoded, max_pixels=83 * 61 - 1)
    assert "83" in str(caught.value)
    assert "61" in str(caught.value)


def test_size_is_checked_before_decoding(decode):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)178000000.*60000.*60000"):
        decode(HUGE_PNG)
    # The header alone: there is nothing to decode, and the error is about the size.
    jpeg = JPEGS["baseline"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="(?s)max_image_pixels=99 .*83.*61"):
        decode(jpeg[: jpeg.index(b"\xff\xda") + 20], max_pixels=99)


def test_pillows_own_limit_does_not_count(decode, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    assert decode(EXACT["BMP 24 bit"]).shape == (61, 83, 3)
    assert decoding.explain(JPEGS["baseline"]) is None
    assert Image.MAX_IMAGE_PIXELS == 100


def test_limit_is_the_flag():
    assert decoding.pixel_limit() == 178_000_000
    FLAGS.set("max_image_pixels", 5000)
    assert decoding.pixel_limit() == 5000
    assert decoding.pixel_limit(70) == 70
    assert decoding.explain(JPEGS["baseline"]) == "JPEG claims 83x61 pixels, more than --max_image_pixels=5000"
    FLAGS.set("max_image_pixels", 0)
    with pytest.raises(ValueError, match="--max_image_pixels=0: expected a positive whole number"):
        decoding.pixel_limit()


# --- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, -1, 1.5, True])
def test_wrong_limit(limit):
    with pytest.raises(ValueError, match=f"max_pixels={limit}: expected a positive whole number"):
        decoding.pixel_limit(limit)


def test_wrong_arguments():
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="channels=4: expected 3"):
            decoding.decode_image(tf.constant(b""), channels=4)
        with pytest.raises(ValueError, match="encoded=.*expected a scalar string"):
            decoding.decode_image(tf.zeros([2, 2, 3]))
        with pytest.raises(ValueError, match="encoded=.*expected a scalar string"):
            decoding.decode_image(tf.constant([b"", b""]))

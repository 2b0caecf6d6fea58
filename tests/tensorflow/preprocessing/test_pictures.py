"""Pictures: parts of decoded and encoded images are the same pixels as parts of the whole."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from PIL import Image

from moxing.tensorflow.preprocessing.pictures import DecodedPicture, EncodedPicture

RANDOM = np.random.default_rng(0)
# Noise has the hardest edges, also in colour; sides are multiples of 32 so that `resampled` may regroup the blocks.
NOISE = Image.fromarray(RANDOM.integers(0, 256, (96, 128, 3), np.uint8))
ODD = NOISE.crop((0, 0, 117, 85))


def encode(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def resampled(jpeg: bytes, factors: int) -> bytes:
    """The same blocks under other sampling factors, which Pillow cannot write."""
    patched = bytearray(jpeg)
    patched[patched.index(b"\xff\xc0") + 11] = factors
    return bytes(patched)


JPEGS = {
    "4:2:0": encode(ODD, "JPEG", quality=90, subsampling=2),
    "4:2:2": encode(ODD, "JPEG", quality=90, subsampling=1),
    "4:4:4": encode(ODD, "JPEG", quality=90, subsampling=0),
    "4:4:0": resampled(encode(NOISE, "JPEG", quality=90, subsampling=1), 0x12),
    "4:1:1": resampled(encode(NOISE, "JPEG", quality=90, subsampling=2), 0x41),
    "progressive": encode(ODD, "JPEG", quality=90, progressive=True),
    "restart markers": encode(ODD, "JPEG", restart_marker_blocks=3),
    "grey": encode(ODD.convert("L"), "JPEG"),
    "CMYK": encode(ODD.convert("CMYK"), "JPEG"),
}
OTHERS = {
    "PNG": encode(ODD, "PNG"),
    "GIF": encode(ODD.quantize(64), "GIF"),
    "BMP": encode(ODD, "BMP"),
    "WebP": encode(ODD, "WEBP", lossless=True),
}
WINDOW = (17, 40, 31, 45)


class Parts:
    """One graph for all images: an encoded picture, the picture shrunk, and a window of each."""

    def __init__(self, **options: Any) -> None:
        with tf.Graph().as_default():
            self._encoded = tf.placeholder(tf.string, [])
            self._asked = tf.placeholder_with_default([1, 1], [2])
            self._corners = tf.placeholder_with_default([0, 0, 1, 1], [4])
            picture = EncodedPicture(self._encoded, **options)
            self._fetches = {}
            for name, source in (("picture", picture), ("shrunk", picture.shrunk(*tf.unstack(self._asked)))):
                self._fetches[f"{name} size"] = tf.stack([source.height, source.width])
                self._fetches[f"{name} whole"] = source.whole()
                self._fetches[f"{name} window"] = source.window(*tf.unstack(self._corners))
            self.session = tf.Session()

    def __call__(
        self, encoded: bytes, what: str, asked: Sequence[int] = (1, 1), corners: Sequence[int] = (0, 0, 1, 1)
    ) -> np.ndarray:
        feed = {self._encoded: encoded, self._asked: asked, self._corners: corners}
        return self.session.run(self._fetches[what], feed)


def opened(**options: Any) -> Iterator[Parts]:
    parts = Parts(**options)
    yield parts
    parts.session.close()


@pytest.fixture(scope="module")
def colour():
    yield from opened()


@pytest.fixture(scope="module")
def grey():
    yield from opened(channels=1)


@pytest.fixture(scope="module")
def limited():
    """For images of one pixel less than ODD."""
    yield from opened(max_pixels=85 * 117 - 1)


def decode_jpeg(encoded: bytes, ratio: int = 1, channels: int = 3) -> np.ndarray:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(tf.image.decode_jpeg(encoded, channels=channels, ratio=ratio, dct_method="INTEGER_ACCURATE"))


def cut(image: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
    return image[top : top + height, left : left + width]


def random_windows(height: int, width: int, count: int) -> list[list[int]]:
    corners = []
    for _ in range(count):
        top, left = int(RANDOM.integers(0, height)), int(RANDOM.integers(0, width))
        corners.append(
            [top, left, int(RANDOM.integers(1, height - top + 1)), int(RANDOM.integers(1, width - left + 1))]
        )
    return [*corners, [0, 0, height, width], [0, 0, 1, 1], [height - 1, width - 1, 1, 1], [0, width // 2, height, 1]]


# --- encoded ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
@pytest.mark.parametrize("name", JPEGS)
def test_windows_of_a_jpeg_are_exact(colour, name, ratio):
    """As of the whole image decoded by TensorFlow's operation, at every scale."""
    encoded, source = JPEGS[name], "picture" if ratio == 1 else "shrunk"
    whole = decode_jpeg(encoded, ratio)
    asked = whole.shape[:2]
    assert colour(encoded, f"{source} size", asked).tolist() == list(asked)
    np.testing.assert_array_equal(colour(encoded, f"{source} whole", asked), whole)
    for window in random_windows(*asked, count=40):
        pixels = colour(encoded, f"{source} window", asked, window)
        np.testing.assert_array_equal(pixels, cut(whole, *window), err_msg=str(window))


@pytest.mark.parametrize("name", OTHERS)
def test_windows_of_other_formats(colour, name):
    whole = np.asarray(Image.open(io.BytesIO(OTHERS[name])).convert("RGB"))
    for source in ("picture", "shrunk"):  # they do not shrink
        assert colour(OTHERS[name], f"{source} size").tolist() == [85, 117]
        np.testing.assert_array_equal(colour(OTHERS[name], f"{source} whole"), whole)
        np.testing.assert_array_equal(colour(OTHERS[name], f"{source} window", corners=WINDOW), cut(whole, *WINDOW))


@pytest.mark.parametrize("name", ["4:2:0", "progressive", "grey"])
def test_grey_windows(grey, name):
    whole, half = (decode_jpeg(JPEGS[name], ratio, channels=1) for ratio in (1, 2))
    np.testing.assert_array_equal(grey(JPEGS[name], "picture window", corners=WINDOW), cut(whole, *WINDOW))
    corners = (1, 2, 30, 40)
    np.testing.assert_array_equal(grey(JPEGS[name], "shrunk window", half.shape[:2], corners), cut(half, *corners))


def test_grey_windows_of_cmyk(grey):
    window = grey(JPEGS["CMYK"], "picture window", corners=WINDOW)
    expected = Image.fromarray(cut(decode_jpeg(JPEGS["CMYK"]), *WINDOW)).convert("L")
    np.testing.assert_array_equal(window[..., 0], np.asarray(expected))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ((86, 10), [85, 117]),  # more than there is
        ((44, 59), [85, 117]),
        ((43, 60), [85, 117]),
        ((43, 59), [43, 59]),
        ((23, 30), [43, 59]),
        ((22, 30), [22, 30]),
        ((11, 15), [11, 15]),
        ((1, 1), [11, 15]),
    ],
)
def test_shrunk_is_the_smallest_that_is_large_enough(colour, asked, expected):
    assert colour(JPEGS["4:2:0"], "shrunk size", asked).tolist() == expected
    assert list(colour(JPEGS["4:2:0"], "shrunk whole", asked).shape) == [*expected, 3]


def test_shrunk_by_numbers_known_when_the_graph_is_built():
    with tf.Graph().as_default(), tf.Session() as session:
        small = EncodedPicture(tf.constant(JPEGS["4:2:0"])).shrunk(43, 59)
        np.testing.assert_array_equal(session.run(small.whole()), decode_jpeg(JPEGS["4:2:0"], 2))


def test_shrunk_twice():
    with tf.Graph().as_default(), tf.Session() as session:
        half = EncodedPicture(tf.constant(JPEGS["4:2:0"])).shrunk(43, 59)
        for picture, expected in ((half, [43, 59]), (half.shrunk(20, 20), [22, 30]), (half.shrunk(80, 80), [43, 59])):
            assert session.run([picture.height, picture.width]) == expected
            assert session.run(tf.shape(picture.whole())).tolist() == [*expected, 3]


def test_static_shapes():
    with tf.Graph().as_default():
        picture = EncodedPicture(tf.placeholder(tf.string, []), channels=1)
        offset = tf.placeholder(tf.int32, [])
        for source in (picture, picture.shrunk(64, 64), DecodedPicture(tf.placeholder(tf.float32, [None, None, 1]))):
            assert source.channels == 1
            assert source.whole().shape.as_list() == [None, None, 1]
            assert source.window(offset, offset, 32, 48).shape.as_list() == [32, 48, 1]
            assert source.window(offset, offset, offset, 48).shape.as_list() == [None, 48, 1]


def test_one_data_set_of_all_formats():
    encoded = [*JPEGS.values(), *OTHERS.values()]

    def use(one: tf.Tensor) -> tf.Tensor:
        picture = EncodedPicture(one).shrunk(30, 40)
        return picture.window(picture.height - 20, picture.width - 25, 20, 25)

    with tf.Graph().as_default(), tf.Session() as session:
        windows = tf.data.Dataset.from_tensor_slices(encoded).map(use, num_parallel_calls=4).batch(len(encoded))
        batch = session.run(tf.data.make_one_shot_iterator(windows).get_next())
    for one, window in zip(encoded, batch, strict=True):
        image = decode_jpeg(one, 2) if one in JPEGS.values() else np.asarray(Image.open(io.BytesIO(one)).convert("RGB"))
        np.testing.assert_array_equal(window, image[-20:, -25:])


@pytest.mark.parametrize(
    "window", [(0, 0, 86, 10), (0, 0, 10, 118), (80, 0, 6, 10), (0, 117, 5, 1), (-1, 0, 5, 5), (0, -1, 5, 5)]
)
@pytest.mark.parametrize("name", ["4:2:0", "PNG"])
def test_window_outside_the_picture(colour, name, window):
    with pytest.raises(tf.errors.InvalidArgumentError):
        colour({**JPEGS, **OTHERS}[name], "picture window", corners=window)


@pytest.mark.parametrize("what", ["picture size", "picture whole", "picture window", "shrunk whole", "shrunk window"])
@pytest.mark.parametrize("name", ["4:2:0", *OTHERS])
def test_more_pixels_than_allowed(limited, name, what):
    with pytest.raises(tf.errors.InvalidArgumentError, match="(?s)max_image_pixels=9944"):
        limited({**JPEGS, **OTHERS}[name], what)


@pytest.mark.parametrize(
    "encoded",
    [b"", b"<html>", JPEGS["4:2:0"][:10], JPEGS["4:2:0"][:-500], OTHERS["PNG"][:20], OTHERS["PNG"][:-500]],
    ids=["empty", "html", "JPEG header", "JPEG end", "PNG header", "PNG end"],
)
def test_broken_bytes(colour, encoded):
    with pytest.raises(tf.errors.InvalidArgumentError):
        colour(encoded, "picture window", corners=(40, 40, 45, 20))


def test_only_the_header_is_read_for_the_size(colour):
    jpeg = JPEGS["4:2:0"]
    assert colour(jpeg[: jpeg.index(b"\xff\xda") + 20], "picture size").tolist() == [85, 117]


def test_wrong_channels():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="channels=2: expected 3"):
        EncodedPicture(tf.constant(b""), channels=2)


# --- decoded ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_decoded_picture(dtype):
    image = np.asarray(ODD).astype(dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        picture = DecodedPicture(tf.constant(image))
        assert picture.channels == 3
        assert session.run([picture.height, picture.width]) == [85, 117]
        assert picture.shrunk(10, 10) is picture
        assert picture.whole().dtype == dtype
        np.testing.assert_array_equal(session.run(picture.whole()), image)
        np.testing.assert_array_equal(session.run(picture.window(*WINDOW)), cut(image, *WINDOW))


def test_window_outside_a_decoded_picture():
    with tf.Graph().as_default(), tf.Session() as session:
        picture = DecodedPicture(tf.placeholder_with_default(tf.zeros([4, 5, 3]), [None, None, 3]))
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(picture.window(0, 2, 4, 4))


@pytest.mark.parametrize("shape", [[4, 5], [None, None, None], None])
def test_decoded_picture_of_wrong_shape(shape):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"expected \[height, width, channels\]"):
        DecodedPicture(tf.placeholder(tf.float32, shape))


# --- photos -----------------------------------------------------------------------------------------------------------


@pytest.mark.realdata
def test_windows_of_photos(real_data):
    files = sorted(real_data.glob("flowers/*/*.jpg"))[::200]
    assert files

    def use(one: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        picture = EncodedPicture(one)
        corner = picture.height // 3, picture.width // 4, picture.height // 2, picture.width // 2
        return picture.window(*corner), DecodedPicture(picture.whole()).window(*corner)

    with tf.Graph().as_default(), tf.Session() as session:
        photos = tf.data.Dataset.from_tensor_slices([file.read_bytes() for file in files]).map(use)
        pair = tf.data.make_one_shot_iterator(photos).get_next()
        for _ in files:
            np.testing.assert_array_equal(*session.run(pair))


def test_a_cut_jpeg_is_refused_whichever_part_is_wanted():
    """Its upper part could be decoded; whether a sample is bad must not depend on the crop."""
    encoded = JPEGS["4:2:0"]
    with tf.Graph().as_default(), tf.Session() as session:
        content = tf.placeholder(tf.string, [])
        corner = EncodedPicture(content).window(0, 0, 4, 4)
        half = EncodedPicture(content).shrunk(8, 8).window(0, 0, 4, 4)
        session.run([corner, half], {content: encoded})
        np.testing.assert_array_equal(*(session.run(corner, {content: data}) for data in (encoded, encoded + b"tail")))
        for part in (corner, half):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(part, {content: encoded[: len(encoded) * 3 // 4]})

"""Which images are stored as they are, and what becomes of the others."""

import io

import numpy as np
from PIL import Image
from tool_images import (
    encoded,
    every_kind,
    pixels,
    records,
    value,
    write_files,
)

from moxing.tensorflow.datasets.tools.conversion import convert_image_folder
from moxing.tensorflow.datasets.tools.conversion_plan import RecordFiles
from moxing.tensorflow.datasets.tools.image_records import ImageDecoder


def test_plain_images_are_stored_byte_by_byte_and_the_others_become_png(tmp_path):
    files = every_kind()
    write_files(tmp_path / "src", files)
    done = convert_image_folder(tmp_path / "src", tmp_path / "dst")
    assert done.kept == {"JPEG": 4, "PNG": 2}
    assert done.changed == {
        "CMYK JPEG to PNG": 1,
        "PNG with alpha to PNG": 3,
        "palette PNG to PNG": 1,
        "16-bit PNG to PNG": 1,
        "1-bit PNG to PNG": 1,
        "GIF to PNG": 1,
        "BMP to PNG": 1,
        "WebP to PNG": 2,
    }
    for features in records(tmp_path / "dst", "train-00000-of-00001"):
        name = f"{value(features, 'image/class/text').decode()}/{value(features, 'image/filename').decode()}"
        content = value(features, "image/encoded")
        with Image.open(io.BytesIO(content)) as image:
            assert value(features, "image/format").decode() == image.format.lower() in ("jpeg", "png")
            assert (value(features, "image/width"), value(features, "image/height")) == image.size
            assert image.mode == {1: "L", 3: "RGB"}[value(features, "image/channels")]
        if not name.startswith("changed/"):
            assert content == files[name]
        assert value(features, "image/colorspace") == (b"Grayscale" if "kept/grey" in name else b"RGB")
    assert (tmp_path / "dst" / "labels.txt").read_text() == "0:changed\n1:kept\n2:深 class\n"


def test_large_images_are_made_smaller(tmp_path):
    smooth = Image.linear_gradient("L").resize((400, 200)).convert("RGB")
    write_files(tmp_path / "src", {"a/l.jpg": encoded(smooth, "JPEG"), "a/l.gif": encoded(smooth, "GIF"),
                           "a/tall.png": encoded(smooth.resize((101, 999)), "PNG"),
                           "a/small.jpg": encoded(pixels(size=(300, 100)), "JPEG")})  # fmt: skip
    done = convert_image_folder(tmp_path / "src", tmp_path / "dst", records=RecordFiles(resize_short_side=100))
    assert done.kept == {"JPEG": 1}
    assert done.changed == {
        "JPEG resized, to JPEG": 1, "GIF resized, to PNG": 1, "PNG resized, to PNG": 1,
    }  # fmt: skip
    found = {value(one, "image/filename"): one for one in records(tmp_path / "dst", "train-00000-of-00001")}
    sizes = {name: (value(one, "image/width"), value(one, "image/height")) for name, one in found.items()}
    assert sizes == {b"l.jpg": (200, 100), b"l.gif": (200, 100), b"tall.png": (100, 989), b"small.jpg": (300, 100)}
    with Image.open(io.BytesIO(value(found[b"l.jpg"], "image/encoded"))) as image:
        assert image.format == "JPEG" and image.size == (200, 100)
        np.testing.assert_allclose(np.asarray(image), np.asarray(smooth.resize((200, 100))), atol=6)


def test_a_decoder_serves_many_threads():
    from concurrent.futures import ThreadPoolExecutor

    images = [pixels(size=(10 + i % 40, 5 + i % 30)) for i in range(100)]
    contents = [encoded(image, "PNG") for image in images]
    with ImageDecoder() as decoder, ThreadPoolExecutor(8) as pool:
        for image, found in zip(images, pool.map(decoder.pixels, contents), strict=True):
            np.testing.assert_array_equal(found, np.asarray(image))

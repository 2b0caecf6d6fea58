"""Image folders of every kind for the tests of the tools, and the records that they write."""

from __future__ import annotations

import io
import os

import numpy as np
import tensorflow.compat.v1 as tf
from PIL import Image

from moxing.tensorflow.datasets.tools import conversion
from moxing.tensorflow.datasets.tools.image_records import store_image

RNG = np.random.default_rng(7)


def pixels(mode="RGB", size=(23, 17)):
    channels = {"L": (), "RGB": (3,), "RGBA": (4,), "CMYK": (4,), "LA": (2,)}[mode]
    return Image.fromarray(RNG.integers(0, 256, (size[1], size[0], *channels), np.uint8), mode)


def encoded(image, kind="PNG", **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def every_kind():
    """Name to content of images of all kinds that can be decoded; those under `kept/` stay as they are."""
    deep = Image.fromarray(RNG.integers(0, 65536, (17, 23), np.uint16))
    return {
        "kept/colour.jpg": encoded(pixels(), "JPEG"),
        "kept/progressive.jpg": encoded(pixels(), "JPEG", progressive=True),
        "kept/grey.jpg": encoded(pixels("L"), "JPEG"),
        "kept/a png called.jpg": encoded(pixels(), "PNG"),
        "kept/grey.png": encoded(pixels("L"), "PNG"),
        "changed/cmyk.jpg": encoded(pixels("CMYK"), "JPEG"),
        "changed/alpha.png": encoded(pixels("RGBA"), "PNG"),
        "changed/grey alpha.png": encoded(pixels("LA"), "PNG"),
        "changed/transparent colour.png": encoded(pixels(), "PNG", transparency=(1, 2, 3)),
        "changed/palette.png": encoded(pixels().quantize(32), "PNG"),
        "changed/deep.png": encoded(deep, "PNG"),
        "changed/bits.png": encoded(pixels("L").convert("1"), "PNG"),
        "changed/a.gif": encoded(pixels(), "GIF"),
        "changed/a.bmp": encoded(pixels(), "BMP"),
        "changed/lossy.webp": encoded(pixels(), "WEBP"),
        "changed/lossless.webp": encoded(pixels("RGBA"), "WEBP", lossless=True),
        "深 class/é.jpg": encoded(pixels(), "JPEG"),
    }


def bad_images():
    whole = encoded(pixels(size=(90, 70)), "JPEG")
    png = bytearray(encoded(pixels(), "PNG"))
    png[60] ^= 0xFF
    return {
        "bad/empty.jpg": (b"", "empty file"),
        "bad/page.jpg": (b"<html>404</html>", "not an image"),
        "bad/cut.jpg": (whole[: len(whole) // 2], "truncated"),
        "bad/zeros.png": (bytes(500), "only zero bytes"),
        "bad/damaged.png": (bytes(png), "PNG, 23x17"),
        "bad/scan.tif": (encoded(pixels(), "TIFF"), "TIFF file"),
    }


def write_files(root, files):
    for name, content in files.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(content)


def many(root, count=60):
    write_files(root, {f"{'abc'[i % 3]}/{i:03d}.png": encoded(pixels(size=(9, 5)), "PNG") for i in range(count)})


def records(directory, name):
    path = os.path.join(directory, name)
    return [
        tf.train.Example.FromString(record).features.feature for record in tf.python_io.tf_record_iterator(str(path))
    ]


def value(features, key):
    kind = features[key]
    return (kind.bytes_list.value or kind.int64_list.value)[0]


def read_all(make):
    """Class and file name to pixels and label, as a dataset delivers them."""
    found = {}
    with tf.Graph().as_default(), tf.Session() as session:
        tensors = make().get(["image", "label", "label_desc", "image_name"])
        while True:
            try:
                image, label, desc, name = session.run(tensors)
            except tf.errors.OutOfRangeError:
                return found
            assert (desc, name) not in found
            found[desc, name] = (int(label), image)


def names_in(directory):
    return sorted(name for name in os.listdir(directory) if "-of-" in name)


class Stop(Exception):
    pass


def interrupt(monkeypatch, after):
    seen = []

    def stops(*arguments):
        seen.append(1)
        if len(seen) > after:
            raise Stop
        return store_image(*arguments)

    monkeypatch.setattr(conversion, "store_image", stops)

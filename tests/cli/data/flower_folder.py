"""Image folders for the tests of `moxing data`."""

from __future__ import annotations

import io
import os

import numpy as np
from PIL import Image

from moxing.cli import main

RNG = np.random.default_rng(3)


def encoded(kind="PNG", size=(30, 20)):
    stream = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, (size[1], size[0], 3), np.uint8)).save(stream, kind)
    return stream.getvalue()


def put(root, files):
    for name, content in files.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(content)


def run(*words, code=0):
    assert main.main(["data", *words]) == code

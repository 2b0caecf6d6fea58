"""Reads the IDX format of the MNIST files: a big-endian header, then unsigned bytes."""

from __future__ import annotations

import gzip
import os
import zlib

import numpy as np

from moxing.framework import file as mox_file

#: The files that `read_data_sets` reads. Each may also be uncompressed, without `.gz`.
FILE_NAMES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)

_IMAGES_MAGIC = 2051
_LABELS_MAGIC = 2049
_GZIP_MAGIC = b"\x1f\x8b"


def find(directory: str, name: str) -> str:
    """Returns the path of an IDX file in `directory`, compressed or not.

    Raises:
      FileNotFoundError: the file does not exist under either name. Nothing is downloaded.
    """
    packed = _join(directory, name)
    for path in (packed, packed.removesuffix(".gz")):
        if mox_file.exists(path):
            return path
    raise FileNotFoundError(
        f"MNIST file not found: {packed} (nor without .gz). Nothing is downloaded: put the four files "
        f"{', '.join(FILE_NAMES)} into the directory {directory!r}."
    )


def read_images(path: str) -> np.ndarray:
    """Reads an image file as uint8 of shape [count, rows, columns, 1].

    Raises:
      ValueError: the file is damaged or is not an image file.
    """
    content = _content(path)
    number, rows, columns = _header(path, content, _IMAGES_MAGIC, "images", dimensions=3)
    pixels = _body(path, content, dimensions=3, size=number * rows * columns)
    return pixels.reshape(number, rows, columns, 1)


def read_labels(path: str) -> np.ndarray:
    """Reads a label file as uint8 of shape [count].

    Raises:
      ValueError: the file is damaged or is not a label file.
    """
    content = _content(path)
    (number,) = _header(path, content, _LABELS_MAGIC, "labels", dimensions=1)
    return _body(path, content, dimensions=1, size=number)


def _join(directory: str, name: str) -> str:
    if "://" in directory:
        return f"{directory.rstrip('/')}/{name}"
    return os.path.join(directory, name)


def _content(path: str) -> bytes:
    with mox_file.File(path, "rb") as stream:
        raw: bytes = stream.read()
    # By content, not by name: browsers and object stores may unpack a .gz and keep its name, or the reverse.
    if not raw.startswith(_GZIP_MAGIC):
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(
            f"MNIST file {path} is damaged: its {len(raw)} bytes cannot be decompressed ({error}). Copy it again."
        ) from error


def _header(path: str, content: bytes, magic: int, kind: str, dimensions: int) -> tuple[int, ...]:
    length = 4 * (1 + dimensions)
    if len(content) < length:
        raise ValueError(
            f"MNIST file {path} is damaged: {len(content)} bytes, less than the {length} of an IDX header. "
            "Copy it again."
        )
    found, *sizes = (int(word) for word in np.frombuffer(content, dtype=">u4", count=1 + dimensions))
    if found != magic:
        raise ValueError(
            f"MNIST file {path} is not an IDX file of {kind}: magic number {found}, expected {magic}. "
            "It is another file, or it is damaged."
        )
    return tuple(sizes)


def _body(path: str, content: bytes, dimensions: int, size: int) -> np.ndarray:
    offset = 4 * (1 + dimensions)
    present = len(content) - offset
    if present != size:
        raise ValueError(
            f"MNIST file {path} is damaged: expected {size} bytes of data after the header, got {present}. "
            "Copy it again."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=offset)

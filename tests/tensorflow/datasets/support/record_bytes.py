"""TFRecord files for the tests of records, byte by byte."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.tfrecord.checksums import masked_crc32c
from moxing.tensorflow.datasets.tfrecord.record_index import RecordIndex
from moxing.tensorflow.datasets.tfrecord.record_reader import RecordReader


def frame(data: bytes) -> bytes:
    length = len(data).to_bytes(8, "little")
    checksums = [masked_crc32c(part).to_bytes(4, "little") for part in (length, data)]
    return length + checksums[0] + data + checksums[1]


def write(path: Path, records: list[bytes]) -> str:
    with tf.python_io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def make_records(count: int, longest: int = 300, seed: int = 0) -> list[bytes]:
    source = random.Random(seed)
    return [b"%d:" % i + source.randbytes(source.randrange(longest)) for i in range(count)]


def deliver(path: str) -> list[bytes]:
    """All that can be read from a file."""
    index = RecordIndex.build([path])
    return [record for record in RecordReader(index).read(range(len(index))) if record is not None]


RECORDS = make_records(9, seed=1)


STARTS = np.cumsum([0, *(len(record) + 16 for record in RECORDS)]).tolist()


def flip(content: bytearray, position: int) -> bytearray:
    content[position] ^= 0x40
    return content


def zero(content: bytearray, begin: int, end: int) -> bytearray:
    content[begin:end] = bytes(end - begin)
    return content

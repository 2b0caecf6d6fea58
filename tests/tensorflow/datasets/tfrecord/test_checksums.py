"""Checksums of TFRecord, against files that TensorFlow wrote."""

from __future__ import annotations

import random
import threading

import google_crc32c
import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.tfrecord.checksums import are_headers_valid, masked_crc32c

SIZES = [0, 1, 3, 4, 5, 8, 255, 256, 257, 260, 511, 512, 513, 10_000]


def bitwise_crc32c(data: bytes) -> int:
    """The definition, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """The mask of the TFRecord format: a rotation by 15 bits and a constant."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@pytest.mark.parametrize("size", SIZES)
def test_checksum_follows_the_definition(size):
    data = random.Random(size).randbytes(size)
    assert masked_crc32c(data) == masked(bitwise_crc32c(data))


def test_known_values():
    # From the appendix on test vectors in the iSCSI standard (RFC 3720, B.4).
    assert masked_crc32c(bytes(32)) == masked(0x8A9136AA)
    assert masked_crc32c(b"\xff" * 32) == masked(0x62A8AB43)
    assert masked_crc32c(bytes(range(32))) == masked(0x46DD794E)
    assert masked_crc32c(b"123456789") == masked(0xE3069283)


def test_checksum_is_computed_in_native_code():
    # The library has a form in plain Python for platforms without a wheel: 1,000 times slower.
    assert google_crc32c.implementation == "c"


def test_checksums_are_those_of_tensorflow(tmp_path):
    path = str(tmp_path / "a")
    data = [b"", b"x", random.Random(0).randbytes(70_000)]
    with tf.python_io.TFRecordWriter(path) as writer:
        for record in data:
            writer.write(record)
    expected = b"".join(
        length + masked_crc32c(length).to_bytes(4, "little") + record + masked_crc32c(record).to_bytes(4, "little")
        for record in data
        for length in [len(record).to_bytes(8, "little")]
    )
    assert (tmp_path / "a").read_bytes() == expected


def test_every_wrong_bit_in_a_header_is_seen():
    length = (12_345).to_bytes(8, "little")
    header = np.frombuffer(length + masked_crc32c(length).to_bytes(4, "little"), np.uint8)
    flips = np.unpackbits(header)[None, :] ^ np.eye(96, dtype=np.uint8)
    headers = np.concatenate([header[None, :], np.packbits(flips, axis=1)])
    assert are_headers_valid(headers).tolist() == [True] + [False] * 96


def test_checksums_in_threads():
    data = [random.Random(i).randbytes(20_000 + i) for i in range(4)]
    expected = [masked(bitwise_crc32c(item)) for item in data]
    results: list[bool] = []

    def work(i: int) -> None:
        results.append(all(masked_crc32c(data[i]) == expected[i] for _ in range(500)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4

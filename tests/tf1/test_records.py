"""Checksums of TFRecord, against files that TensorFlow wrote."""

from __future__ import annotations

import platform
import random
import sys
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tf1 import records
from moxing.tf1.records import are_headers_valid, crc32c, masked_crc32c, native_crc32c, numpy_crc32c

#: Around the sizes at which the NumPy form changes its way.
SIZES = [0, 1, 3, 4, 5, 8, 255, 256, 257, 260, 511, 512, 513, 10_000, 256 * 4096 + 17]


def bitwise_crc32c(data: bytes) -> int:
    """The definition, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize("size", SIZES)
def test_both_forms_agree(size):
    data = random.Random(size).randbytes(size)
    expected = bitwise_crc32c(data) if size <= 10_000 else crc32c(data)
    assert numpy_crc32c(data) == crc32c(data) == expected


def test_known_values():
    # From the appendix on test vectors in the iSCSI standard (RFC 3720, B.4).
    for function in (crc32c, numpy_crc32c):
        assert function(bytes(32)) == 0x8A9136AA
        assert function(b"\xff" * 32) == 0x62A8AB43
        assert function(bytes(range(32))) == 0x46DD794E


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="the native form is for Linux"
)
def test_the_native_form_is_found_in_this_tensorflow():
    # Fails when a new TensorFlow brings another version of the library: look for the symbol's new name then.
    assert native_crc32c() is not None


def test_without_the_native_form(monkeypatch):
    monkeypatch.setattr(records, "_NATIVE_SYMBOL", "no_such_symbol")
    native_crc32c.cache_clear()
    try:
        assert native_crc32c() is None
        assert crc32c(b"123456789") == 0xE3069283
    finally:
        native_crc32c.cache_clear()


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
    data = [random.Random(i).randbytes(50_000 + i) for i in range(4)]
    expected = [numpy_crc32c(item) for item in data]
    results: list[bool] = []

    def work(i: int) -> None:
        results.append(all(crc32c(data[i]) == expected[i] for _ in range(500)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4

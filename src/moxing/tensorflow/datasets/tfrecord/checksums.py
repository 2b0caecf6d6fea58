"""Checksums of TFRecord files: CRC-32C, masked as the format requires.

A record consists of its length (8 bytes, little endian), the masked checksum of these 8 bytes, the data, and the masked
checksum of the data. TensorFlow has no Python function for the checksum, and its own reader fills a buffer of 16 MB at
every jump to another record (measured: 750 records/s, against 290,000 with `os.pread` and `masked_crc32c`).
"""

from __future__ import annotations

import functools

import google_crc32c
import numpy as np

#: Bytes before the data of a record, and after it.
HEADER_BYTES, FOOTER_BYTES = 12, 4

_LENGTH_BYTES = 8
_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
_ALL_ONES = 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """Returns the checksum of `data` as a TFRecord file stores it.

    Example:
      >>> hex(masked_crc32c(b''))
      '0xa282ead8'
    """
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ALL_ONES


def are_headers_valid(headers: np.ndarray) -> np.ndarray:
    """Checks many record headers at once: does the stored checksum match the length?

    Args:
      headers: uint8 of shape (n, 12), one header per row.

    Returns:
      bool of shape (n,).

    Example:
      >>> header = bytes(8) + masked_crc32c(bytes(8)).to_bytes(4, 'little')
      >>> are_headers_valid(np.frombuffer(header + bytes(12), np.uint8).reshape(2, 12)).tolist()
      [True, False]
    """
    tables = _tables()
    crc: np.ndarray = np.full(len(headers), _ALL_ONES, np.uint32)
    for i in range(_LENGTH_BYTES):
        # The checksum starts with all ones, which equals inverting the first four bytes.
        byte = headers[:, i] ^ np.uint8(0xFF) if i < 4 else headers[:, i]
        crc ^= tables[_LENGTH_BYTES - 1 - i][byte]
    masked = (crc >> np.uint32(15) | crc << np.uint32(17)) + np.uint32(_MASK_DELTA)
    stored = np.ascontiguousarray(headers[:, 8:12]).view("<u4").reshape(-1)
    return masked == stored


@functools.cache
def _tables() -> np.ndarray:
    """Row d, column b: the contribution of byte b to the checksum when d bytes follow it."""
    row: np.ndarray = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        row = np.where(row & 1, row >> 1 ^ np.uint32(_POLYNOMIAL), row >> 1).astype(np.uint32)
    rows = [row]
    for _ in range(_LENGTH_BYTES - 1):
        rows.append(rows[-1] >> 8 ^ row[rows[-1] & 0xFF])
    return np.stack(rows)

"""Converts between text and bytes."""

from __future__ import annotations


def as_text(bytes_or_text: str | bytes | bytearray, encoding: str = "utf-8") -> str:
    """Returns text: decodes bytes, and returns text unchanged.

    Raises:
      TypeError: the argument is neither text nor bytes.

    Example:
      >>> as_text(b'flowers'), as_text('flowers')
      ('flowers', 'flowers')
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes | bytearray):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"bytes_or_text={bytes_or_text!r}: expected str or bytes.")


def as_bytes(bytes_or_text: str | bytes | bytearray, encoding: str = "utf-8") -> bytes:
    """Returns bytes: encodes text, and returns bytes unchanged.

    Raises:
      TypeError: the argument is neither text nor bytes.

    Example:
      >>> as_bytes('flowers'), as_bytes(b'flowers')
      (b'flowers', b'flowers')
    """
    if isinstance(bytes_or_text, bytes | bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    raise TypeError(f"bytes_or_text={bytes_or_text!r}: expected str or bytes.")


def as_str(bytes_or_text: str | bytes | bytearray, encoding: str = "utf-8") -> str:
    """Returns a `str`, which is text in Python 3.

    Example:
      >>> as_str(b'flowers')
      'flowers'
    """
    return as_text(bytes_or_text, encoding)

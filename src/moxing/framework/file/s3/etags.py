"""ETags of objects: how large the parts of an upload are, and which ETag a local file would get."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence

#: An object up to this size is one part.
PART_SIZE = 8 << 20
#: The maximum number of parts that a store accepts.
_MAX_PARTS = 10_000
_CHUNK = 1 << 20
_MIB = 1 << 20
#: Part sizes that common clients use, ours first.
_COMMON_PART_SIZES = tuple(size * _MIB for size in (8, 5, 10, 15, 16, 20, 25, 32, 50, 64, 100, 128, 256, 512))


def part_size_for(size: int, minimum: int = PART_SIZE) -> int:
    """Returns the part size for an object: `minimum`, or larger if there would be too many parts.

    Example:
      >>> part_size_for(1 << 30), part_size_for(1 << 40)
      (8388608, 109951163)
    """
    return max(minimum, -(-size // _MAX_PARTS))


def combined_etag(etags: Sequence[str]) -> str | None:
    """Returns the ETag of an object that is made of parts with these ETags; None if one of them is not an MD5.

    Example:
      >>> combined_etag(['"5d41402abc4b2a76b9719d911017c592"'])
      '62109206880d38a4010a98e11243924a-1'
    """
    try:
        digests = b"".join(bytes.fromhex(etag.strip('"')) for etag in etags)
    except ValueError:
        return None
    return f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(etags)}"


def matches_etag(path: str, etag: str) -> bool:
    """Returns whether a local file has the content of an object with this ETag.

    For a multipart object it tries the part sizes that common clients use. An ETag of any other kind does not match.

    Example:
      >>> matches_etag('/dev/null', '"d41d8cd98f00b204e9800998ecf8427e"')
      True
    """
    plain = etag.strip('"').lower()
    return any(plain == candidate for candidate in _possible_etags(path, plain))


def _possible_etags(path: str, etag: str) -> Iterator[str]:
    length = os.path.getsize(path)
    _, separator, count = etag.partition("-")
    if not separator:
        yield _hash_parts(path, length, length)[0]
        return
    for size in dict.fromkeys([part_size_for(length), *_COMMON_PART_SIZES]):
        if count == str(-(-length // size)):
            yield combined_etag(_hash_parts(path, length, size)) or ""


def _hash_parts(path: str, length: int, part_size: int) -> list[str]:
    """Returns the MD5 of each part of a file; an empty file has one part."""
    digests = []
    with open(path, "rb") as stream:
        for start in range(0, max(length, 1), max(part_size, 1)):
            digest = hashlib.md5(usedforsecurity=False)
            left = min(part_size, length - start)
            while left > 0 and (chunk := stream.read(min(_CHUNK, left))):
                digest.update(chunk)
                left -= len(chunk)
            digests.append(digest.hexdigest())
    return digests

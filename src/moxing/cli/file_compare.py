"""Whether two files of one size are the same: by their times, or by their contents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import moxing as mox
from moxing.framework.file.backends import find_place
from moxing.framework.file.entries import RemoteEntry

_SECOND = 1_000_000_000
_CHUNK = 1 << 20
_MIB = 1 << 20
#: Parts that uploads are made of, by us and by other programs.
_PART_SIZES = tuple(size * _MIB for size in (8, 5, 10, 15, 16, 20, 25, 32, 50, 64, 100, 128, 256, 512))


def source_is_newer(source: RemoteEntry, target: RemoteEntry) -> bool | None:
    """Whether the source was changed after the target; None if the times do not tell.

    Stores keep whole seconds: within the second of the target anything may have come first.

    Example:
      >>> old, new = RemoteEntry('a', False, 1, 1_500_000_000), RemoteEntry('a', False, 1, 3_000_000_000)
      >>> source_is_newer(new, old), source_is_newer(old, new)
      (True, False)
      >>> source_is_newer(old, RemoteEntry('a', False, 1, 1_000_000_000)) is None
      True
    """
    ours, theirs = source.mtime_nsec, target.mtime_nsec
    if theirs % _SECOND and ours % _SECOND:
        return ours > theirs
    if ours // _SECOND == theirs // _SECOND:
        return None
    return ours > theirs


def same_content(source: str, source_entry: RemoteEntry, target: str, target_entry: RemoteEntry) -> bool:
    """Whether two files of one size have the same content.

    What is in a store is not fetched for that: its ETag is compared with that of the other, or with what the local file
    would have. An ETag that nothing is known about counts as another content.
    """
    tags = [entry.version.strip('"').lower() for entry in (source_entry, target_entry)]
    if all(tags):
        return tags[0] == tags[1]
    for tag, other in ((tags[0], target), (tags[1], source)):
        if tag and find_place(other, "url") is None:
            return tag in _local_tags(other, tag, source_entry.length)
    return _same_bytes(source, target)


def _local_tags(path: str, tag: str, length: int) -> Iterator[str]:
    """The ETags that the content of a local file may have."""
    _, separator, count = tag.partition("-")
    if not separator:
        yield _tag(path, length, None)
        return
    from moxing.framework.file.s3_multipart import part_size_for

    sizes = dict.fromkeys([part_size_for(length), *_PART_SIZES])
    for size in sizes:
        if -(-length // size) == (int(count) if count.isdecimal() else 0):
            yield _tag(path, length, size)


def _tag(path: str, length: int, part: int | None) -> str:
    """The MD5, or for parts the MD5 of their MD5s and their number."""
    from moxing.framework.file.s3_multipart import combined_etag
    from moxing.framework.file.s3_xml import Part

    digests = []
    with mox.file.File(path, "rb") as stream:
        for start in range(0, max(length, 1), part or max(length, 1)):
            digest = hashlib.md5(usedforsecurity=False)
            left = length - start if part is None else min(part, length - start)
            while left > 0 and (chunk := stream.read(min(_CHUNK, left))):
                digest.update(chunk)
                left -= len(chunk)
            digests.append(digest.hexdigest())
    if part is None:
        return digests[0]
    return combined_etag([Part(digest) for digest in digests]) or ""


def _same_bytes(source: str, target: str) -> bool:
    with mox.file.File(source, "rb") as one, mox.file.File(target, "rb") as other:
        while True:
            chunk = one.read(_CHUNK)
            if chunk != other.read(_CHUNK):
                return False
            if not chunk:
                return True

"""Compares two files of the same size, by modification time or by content."""

from __future__ import annotations

import moxing as mox
from moxing.framework.file.entries import FileEntry
from moxing.framework.file.urls import find_remote, resolve

_SECOND = 1_000_000_000
_CHUNK = 1 << 20


def source_is_newer(source: FileEntry, target: FileEntry) -> bool | None:
    """Returns whether the source is newer than the target; None if the times do not tell.

    Stores keep whole seconds: within the same second, either may be newer.

    Example:
      >>> old, new = FileEntry('a', False, 1, 1_500_000_000), FileEntry('a', False, 1, 3_000_000_000)
      >>> source_is_newer(new, old), source_is_newer(old, new)
      (True, False)
      >>> source_is_newer(old, FileEntry('a', False, 1, 1_000_000_000)) is None
      True
    """
    ours, theirs = source.mtime_nsec, target.mtime_nsec
    if theirs % _SECOND and ours % _SECOND:
        return ours > theirs
    if ours // _SECOND == theirs // _SECOND:
        return None
    return ours > theirs


def same_content(source: str, source_entry: FileEntry, target: str, target_entry: FileEntry) -> bool:
    """Returns whether two files of the same size have the same content.

    Objects are not downloaded: their ETags are compared with each other, or with the ETag that the local file would
    get. An ETag of an unknown kind counts as different content.
    """
    versions = [entry.version.strip('"').lower() for entry in (source_entry, target_entry)]
    if all(versions):
        return versions[0] == versions[1]
    for version, stored, other in ((versions[0], source, target), (versions[1], target, source)):
        remote, local = find_remote(stored, "url"), resolve(other, "url")
        if version and remote is not None and isinstance(local, str):
            return remote.backend.matches_version(version, local)
    return _same_bytes(source, target)


def _same_bytes(source: str, target: str) -> bool:
    with mox.file.File(source, "rb") as one, mox.file.File(target, "rb") as other:
        while True:
            chunk = one.read(_CHUNK)
            if chunk != other.read(_CHUNK):
                return False
            if not chunk:
                return True

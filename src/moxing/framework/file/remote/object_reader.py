"""An object that is open for reading, fetched in ranges."""

from __future__ import annotations

import io
import os
from typing import Any

from moxing.framework.file.errors import not_exists
from moxing.framework.file.s3.object_client import ObjectClient, ObjectInfo
from moxing.framework.util.thread_pool import ThreadPool

#: The size of the first request. It doubles while the file is read sequentially.
_FIRST_WINDOW = 64 << 10
_LARGEST_WINDOW = 8 << 20
_CONCURRENCY = 4


class ObjectReader(io.RawIOBase):
    """An object that is open for reading. Ranges grow while it is read sequentially.

    All ranges come from the version that was opened. If the object is replaced meanwhile, reading raises an error.
    """

    def __init__(self, client: ObjectClient, bucket: str, key: str, info: ObjectInfo, head: bytearray) -> None:
        super().__init__()
        self._client, self._bucket, self._key, self._info = client, bucket, key, info
        self._position = 0
        self._window_start, self._window = 0, head
        self._next_window = 4 * _FIRST_WINDOW

    @classmethod
    def open(cls, client: ObjectClient, bucket: str, key: str) -> ObjectReader | None:
        """Opens an object and reads its start, in one request; returns None if it does not exist."""
        found = client.get(bucket, key, 0, _FIRST_WINDOW)
        return None if found is None else cls(client, bucket, key, found[1], found[0])

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def length(self) -> int:
        """Returns the size of the object."""
        return self._info.size

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._info.size}[whence]
        if base + offset < 0:
            raise OSError(22, f"offset={offset}: before the beginning of the file")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        if not len(view) or self._position >= self._info.size:
            return 0
        offset = self._position - self._window_start
        if not 0 <= offset < len(self._window):
            self._fetch(len(view))
            offset = 0
        count = min(len(view), len(self._window) - offset)
        view[:count] = memoryview(self._window)[offset : offset + count]
        self._position += count
        return count

    def readall(self) -> bytes:
        start, size = self._position, self._info.size
        if start >= size:
            return b""
        offset = start - self._window_start
        have = bytes(self._window[offset:]) if 0 <= offset < len(self._window) else b""
        start += len(have)
        ranges = [(a, min(a + _LARGEST_WINDOW, size)) for a in range(start, size, _LARGEST_WINDOW)]
        if len(ranges) <= 1:
            parts = [self._get(a, b) for a, b in ranges]
        else:
            with ThreadPool(_CONCURRENCY, thread_name_prefix="mox-read") as pool:
                parts = list(pool.map(lambda pair: self._get(*pair), ranges))
        self._position = size
        return b"".join([have, *parts])

    def _fetch(self, wanted: int) -> None:
        """Fetches the window at the current position."""
        if self._position != self._window_start + len(self._window):
            # A random access: start with small windows again.
            self._next_window = _FIRST_WINDOW
        end = min(self._position + max(wanted, self._next_window), self._info.size)
        self._window_start, self._window = self._position, self._get(self._position, end)
        self._next_window = min(2 * self._next_window, _LARGEST_WINDOW)

    def _get(self, start: int, end: int) -> bytearray:
        found = self._client.get(self._bucket, self._key, start, end, self._info.etag or None)
        if found is None:
            raise not_exists("name", self._client.url(self._bucket, self._key), "removed while it was read")
        return found[0]

"""A new object that is open for writing: parts are uploaded while the file is still being written."""

from __future__ import annotations

from functools import partial
from typing import Any

from moxing.framework.file.remote.local_copy import LocalCopy
from moxing.framework.file.remote.object_store import ObjectStore, read_exactly
from moxing.framework.file.s3.object_client import Upload

_PART_SIZE = 8 << 20
#: After this many parts, the part size grows: a store accepts no more than 10,000 parts.
_PARTS_PER_SIZE = 250


class ObjectWriter(LocalCopy):
    """A new object. Its parts are uploaded as soon as they are written.

    If a writer seeks back into a part that was uploaded, as writers of archives do, everything is uploaded on close.
    """

    def __init__(self, store: ObjectStore, path: str) -> None:
        super().__init__("wb+", store, path, lambda _: False)
        self._store = store
        self._upload: Upload | None = None
        self._sent, self._parts = 0, 0
        self._upload_on_close = False

    def write(self, data: Any) -> int:
        if self._aborted:
            # A buffer may still be flushed after the abort.
            return len(memoryview(data).cast("B"))
        if self.tell() < self._sent:
            self._start_over()
        count = super().write(data)
        try:
            while not self._upload_on_close and self.length() - self._sent >= (size := self._next_size()):
                self._send(size)
        except BaseException:
            # Without this part, the object would have a hole.
            self.abort()
            raise
        return count

    def truncate(self, size: int | None = None) -> int:
        if (self.tell() if size is None else size) < self._sent:
            self._start_over()
        return super().truncate(size)

    def _next_size(self) -> int:
        return _PART_SIZE * (1 + self._parts // _PARTS_PER_SIZE)

    def _send(self, size: int) -> None:
        if self._upload is None:
            self._upload = self._store.start_upload(self._path)
        # The sending thread reads the part first, so it keeps its content even if the file changes.
        self._upload.add_part(partial(read_exactly, self._content, self._sent, size))
        self._sent += size
        self._parts += 1

    def _start_over(self) -> None:
        upload, self._upload = self._upload, None
        self._sent, self._upload_on_close = 0, True
        if upload is not None:
            upload.abort()

    def abort(self) -> None:
        super().abort()
        upload, self._upload = self._upload, None
        if upload is not None:
            upload.abort()

    def _upload_content(self) -> None:
        if self._upload is None:
            super()._upload_content()
            return
        try:
            if rest := self.length() - self._sent:
                self._send(rest)
        except BaseException:
            self.abort()
            raise
        self._upload.complete()

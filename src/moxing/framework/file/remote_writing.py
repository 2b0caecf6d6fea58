"""Writing a file of a backend: on the local disk first, from there to the backend, where it appears on close."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from moxing.framework.file.backends import Backend

if TYPE_CHECKING:
    from moxing.framework.file.object_store import ObjectStore
    from moxing.framework.file.s3_multipart import MultipartUpload

_PART_SIZE = 8 << 20
#: So many parts have the first size; then they grow, since a store takes no more than 10,000.
_PARTS_OF_A_SIZE = 250


class LocalCopy(io.FileIO):
    """A temporary local file that becomes a file of a backend when it is closed, if it was changed.

    Args:
      mode: rb+, wb+, ab or ab+.
      backend: The backend.
      path: The file there.
      fill: Writes the content that the file begins with; returns whether there is any such file.
    """

    def __init__(self, mode: str, backend: Backend, path: str, fill: Callable[[str], bool]) -> None:
        self._backend, self._path, self._given_up = backend, path, False
        with tempfile.TemporaryDirectory(prefix="mox-") as directory:
            name = os.path.join(directory, "content")
            is_there = mode[0] != "w" and fill(name)
            if not is_there:
                if mode[0] == "r":
                    raise FileNotFoundError(name)
                with open(name, "wb"):
                    pass
            #: A file that is not there appears even if nothing is written to it, as on a disk.
            self._changed = not is_there
            super().__init__(name, mode.replace("b", ""))
            # The mode may not allow reading. The directory goes, the open file stays.
            self._content = os.open(name, os.O_RDONLY)

    def write(self, data: Any) -> int:
        self._changed = True
        try:
            return super().write(data)
        except BaseException:
            # The disk may be full: what would come of it is not what was written.
            self.abort()
            raise

    def truncate(self, size: int | None = None) -> int:
        self._changed = True
        try:
            return super().truncate(size)
        except BaseException:
            self.abort()
            raise

    def length(self) -> int:
        """The size with all that was written so far."""
        return os.fstat(self._content).st_size

    def abort(self) -> None:
        """Gives up the changes: what was there before stays."""
        self._given_up = True

    def close(self) -> None:
        if self.closed:
            return
        try:
            if self._changed and not self._given_up:
                self._store()
        finally:
            super().close()
            os.close(self._content)

    def _store(self) -> None:
        self._backend.upload(self._content, self._path)


class ObjectWriter(LocalCopy):
    """A new object. What it will consist of is sent while it is written, part by part.

    Whoever goes back into what was sent already, as a writer of archives does, has all of it sent again on close.
    """

    def __init__(self, store: ObjectStore, path: str) -> None:
        super().__init__("wb+", store, path, lambda _: False)
        self._object_store = store
        self._upload: MultipartUpload | None = None
        self._sent, self._parts = 0, 0
        self._all_at_once = False

    def write(self, data: Any) -> int:
        if self._given_up:
            # What buffers still held when it was given up.
            return len(memoryview(data).cast("B"))
        if self.tell() < self._sent:
            self._start_over()
        count = super().write(data)
        try:
            while not self._all_at_once and self.length() - self._sent >= (size := self._next_size()):
                self._send(size)
        except BaseException:
            # Without this part the object would have a hole.
            self.abort()
            raise
        return count

    def truncate(self, size: int | None = None) -> int:
        if (self.tell() if size is None else size) < self._sent:
            self._start_over()
        return super().truncate(size)

    def _next_size(self) -> int:
        return _PART_SIZE * (1 + self._parts // _PARTS_OF_A_SIZE)

    def _send(self, size: int) -> None:
        from moxing.framework.file.object_store import read_exactly

        if self._upload is None:
            self._upload = self._object_store.start_upload(self._path)
        # A part that is under way keeps its content even if the file changes: the thread that sends it reads it first.
        self._upload.write_part_from(partial(read_exactly, self._content, self._sent, size))
        self._sent += size
        self._parts += 1

    def _start_over(self) -> None:
        upload, self._upload = self._upload, None
        self._sent, self._all_at_once = 0, True
        if upload is not None:
            upload.abort()

    def abort(self) -> None:
        super().abort()
        upload, self._upload = self._upload, None
        if upload is not None:
            upload.abort()

    def _store(self) -> None:
        if self._upload is None:
            super()._store()
            return
        try:
            if rest := self.length() - self._sent:
                self._send(rest)
        except BaseException:
            self.abort()
            raise
        self._upload.complete()

"""A remote file that is open for writing: written to the local disk, uploaded on close."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable
from typing import Any

from moxing.framework.file.remote.backend import Backend


class LocalCopy(io.FileIO):
    """A temporary local file that is uploaded when it is closed, if it was changed.

    Args:
      mode: rb+, wb+, ab or ab+.
      backend: The backend.
      path: The remote file.
      fetch: Downloads the existing content to a local path; returns whether there is any.
    """

    def __init__(self, mode: str, backend: Backend, path: str, fetch: Callable[[str], bool]) -> None:
        self._backend, self._path, self._aborted = backend, path, False
        with tempfile.TemporaryDirectory(prefix="mox-") as directory:
            name = os.path.join(directory, "content")
            exists = mode[0] != "w" and fetch(name)
            if not exists:
                if mode[0] == "r":
                    raise FileNotFoundError(name)
                with open(name, "wb"):
                    pass
            # A new file appears even if nothing is written to it, as on a disk.
            self._changed = not exists
            super().__init__(name, mode.replace("b", ""))
            # A second descriptor, since the mode may not allow reading. The open file outlives its directory.
            self._content = os.open(name, os.O_RDONLY)

    def write(self, data: Any) -> int:
        self._changed = True
        try:
            return super().write(data)
        except BaseException:
            # The disk may be full: do not upload a part of what was written.
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
        """Returns the size, including everything written so far."""
        return os.fstat(self._content).st_size

    def abort(self) -> None:
        """Discards the changes: the remote file stays as it was."""
        self._aborted = True

    def close(self) -> None:
        if self.closed:
            return
        try:
            if self._changed and not self._aborted:
                self._upload_content()
        finally:
            super().close()
            os.close(self._content)

    def _upload_content(self) -> None:
        self._backend.upload(self._content, self._path)

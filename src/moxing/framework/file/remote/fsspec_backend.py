"""URLs of all other schemes, through fsspec and its package for the scheme, if they are installed."""

from __future__ import annotations

import importlib.util
import io
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from moxing.framework.file.entries import FileEntry, FileStatistics
from moxing.framework.file.errors import UnsupportedSchemeError
from moxing.framework.file.remote.backend import Backend
from moxing.framework.file.remote.local_copy import LocalCopy

_CHUNK = 8 << 20
#: Packages for common schemes, to name them even if fsspec is not installed.
_PACKAGES = {
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "adlfs"),
    **dict.fromkeys(("http", "https"), "aiohttp"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    "hdfs": "pyarrow",
    "oss": "ossfs",
    "smb": "smbprotocol",
}


def find_backend(scheme: str) -> FsspecBackend:
    """Returns the backend of a scheme; raises an error that names what to install if there is none.

    Example:
      >>> find_backend('nosuch')
      Traceback (most recent call last):
      ...
      moxing.framework.file.errors.UnsupportedSchemeError: there is no backend for nosuch://. ...
    """
    if importlib.util.find_spec("fsspec") is None:
        packages = " ".join(["fsspec", *([_PACKAGES[scheme]] if scheme in _PACKAGES else [])])
        raise UnsupportedSchemeError(
            f"there is no backend for {scheme}://. Local paths, file://, s3:// and obs:// work as they are; "
            f"for other schemes install the package fsspec and the one it needs: pip install {packages}"
        )
    import fsspec

    try:
        fsspec.get_filesystem_class(scheme)
    except ValueError:
        raise UnsupportedSchemeError(
            f"there is no backend for {scheme}://. Local paths, file://, s3:// and obs:// work as they are; "
            f"fsspec {fsspec.__version__} does not know the scheme."
        ) from None
    except ImportError as error:
        package = _PACKAGES.get(scheme) or _package_in(str(error))
        raise UnsupportedSchemeError(
            f"there is no backend for {scheme}://: its package is not installed: pip install {package}"
        ) from None
    return FsspecBackend(scheme)


def _package_in(message: str) -> str:
    """Returns the package that a message of fsspec names, as in 'Install gcsfs to access ...'."""
    found = re.search(r"[Ii]nstall (?:the )?[\"'`]?([A-Za-z0-9_-]+)", message)
    return found.group(1) if found else f"what fsspec asks for: {message}"


class FsspecBackend(Backend):
    """A file system of fsspec. Whether its writes are atomic depends on that file system."""

    has_real_directories = True

    def __init__(self, scheme: str) -> None:
        self._scheme = scheme

    def locate(self, path: str) -> tuple[object, str]:
        # A scheme may have two names, and each host may have its own file system.
        return self._resolve(path)

    def _resolve(self, path: str) -> tuple[Any, str]:
        import fsspec

        system, name = fsspec.core.url_to_fs(f"{self._scheme}://{path}")
        # Some file systems cache listings, which other processes may outdate.
        system.invalidate_cache()
        return system, name

    def stat(self, path: str) -> FileStatistics | None:
        system, name = self._resolve(path)
        try:
            info = system.info(name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        is_directory = info["type"] == "directory"
        return None if path.endswith("/") and not is_directory else _entry("", info).statistics()

    def is_directory(self, path: str) -> bool:
        found = self.stat(path)
        return found is not None and found.is_directory

    def entries(self, path: str) -> list[FileEntry] | None:
        if not self.is_directory(path):
            return None
        system, name = self._resolve(path)
        return [_entry(info["name"].rstrip("/").rpartition("/")[2], info) for info in system.ls(name, detail=True)]

    def tree(self, path: str) -> Iterator[FileEntry]:
        system, name = self._resolve(path)
        root = name.strip("/")
        for found, info in system.find(name, withdirs=True, detail=True).items():
            relative = found.strip("/")[len(root) :].strip("/")
            if relative:
                yield _entry(relative, info)

    def read(self, path: str) -> bytes | None:
        system, name = self._resolve(path)
        try:
            return bytes(system.cat_file(name))
        except (FileNotFoundError, IsADirectoryError):
            return None

    def write(self, path: str, data: bytes) -> None:
        system, name = self._resolve(path)
        system.pipe_file(name, data)

    def make_directory(self, path: str) -> None:
        system, name = self._resolve(path)
        system.makedirs(name, exist_ok=True)

    def remove_file(self, path: str) -> None:
        system, name = self._resolve(path)
        system.rm_file(name)

    def remove_tree(self, path: str) -> None:
        system, name = self._resolve(path)
        system.rm(name, recursive=True)

    def copy(self, source: str, target: str) -> bool:
        system, name = self._resolve(source)
        if not system.isfile(name):
            return False
        system.cp_file(name, self._resolve(target)[1])
        return True

    def upload(
        self, descriptor: int, path: str, concurrency: int = 4, before_part: Callable[[], object] | None = None
    ) -> None:
        if before_part is not None:
            before_part()
        system, name = self._resolve(path)
        parent = name.rpartition("/")[0]
        if parent:
            system.makedirs(parent, exist_ok=True)
        with system.open(name, "wb") as target, open(os.dup(descriptor), "rb") as source:
            source.seek(0)
            while chunk := source.read(_CHUNK):
                target.write(chunk)

    def download(self, path: str, target: str, length: int | None = None, concurrency: int = 4) -> bool:
        from moxing.framework.file.atomic_write import replace_file

        system, name = self._resolve(path)
        found = self.stat(path)
        if found is None or found.is_directory:
            return False

        def fill(stream: Any) -> None:
            for start in range(0, found.length, _CHUNK):
                stream.write(system.cat_file(name, start, min(start + _CHUNK, found.length)))

        replace_file(target, "dst_url", fill, durable=False)
        return True

    def open_reader(self, path: str) -> io.RawIOBase | None:
        system, name = self._resolve(path)
        try:
            if not system.isfile(name):
                return None
            return _Reader(system.open(name, "rb"))
        except (FileNotFoundError, IsADirectoryError):
            return None

    def open_writer(self, path: str) -> LocalCopy:
        # On the local disk first, so that no file system ever shows a partial file.
        return LocalCopy("wb+", self, path, lambda _: False)


class _Reader(io.RawIOBase):
    """Adapts an open file of fsspec to `io.RawIOBase`."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._stream.seekable())

    def readinto(self, buffer: Any) -> int:
        content = self._stream.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._stream.seek(offset, whence)
        return int(self._stream.tell())

    def tell(self) -> int:
        return int(self._stream.tell())

    def length(self) -> int:
        """Returns the size of the file."""
        position = self._stream.tell()
        size = self.seek(0, 2)
        self._stream.seek(position)
        return size

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def _entry(relative: str, info: dict[str, Any]) -> FileEntry:
    modified = next(
        (info[key] for key in ("mtime", "LastModified", "last_modified", "updated", "created") if key in info), 0
    )
    seconds = modified.timestamp() if hasattr(modified, "timestamp") else modified
    nanoseconds = int(seconds * 1e9) if isinstance(seconds, int | float) else 0
    is_directory = info["type"] == "directory"
    return FileEntry(relative, is_directory, int(info.get("size") or 0), nanoseconds)

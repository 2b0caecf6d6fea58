"""Urls of any other scheme, through fsspec and the package that it has for the scheme, where they are installed."""

from __future__ import annotations

import importlib.util
import io
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from moxing.framework.file.backends import Backend
from moxing.framework.file.entries import FileStatistics, RemoteEntry
from moxing.framework.file.errors import UnsupportedSchemeError
from moxing.framework.file.remote_writing import LocalCopy

_CHUNK = 8 << 20
#: Packages for the schemes that people ask for, so that fsspec need not be there to name them.
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
    """The backend of a scheme; an error that names what to install where there is none.

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
    """The package in fsspec's own advice, as in 'Install gcsfs to access ...'."""
    found = re.search(r"[Ii]nstall (?:the )?[\"'`]?([A-Za-z0-9_-]+)", message)
    return found.group(1) if found else f"what fsspec asks for: {message}"


class FsspecBackend(Backend):
    """A file system of fsspec. How safe its writing is, is up to that file system."""

    has_real_directories = True

    def __init__(self, scheme: str) -> None:
        self._scheme = scheme

    def locate(self, path: str) -> tuple[object, str]:
        # A scheme may have two names, and the file system be another one for every host.
        return self._resolve(path)

    def _resolve(self, path: str) -> tuple[Any, str]:
        import fsspec

        system, name = fsspec.core.url_to_fs(f"{self._scheme}://{path}")
        # Listings are kept by some file systems; others may change the files meanwhile.
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

    def entries(self, path: str) -> list[RemoteEntry] | None:
        if not self.is_directory(path):
            return None
        system, name = self._resolve(path)
        return [_entry(info["name"].rstrip("/").rpartition("/")[2], info) for info in system.ls(name, detail=True)]

    def tree(self, path: str) -> Iterator[RemoteEntry]:
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

    def upload(self, descriptor: int, path: str, at_once: int = 4, check: Callable[[], object] | None = None) -> None:
        if check is not None:
            check()
        system, name = self._resolve(path)
        parent = name.rpartition("/")[0]
        if parent:
            system.makedirs(parent, exist_ok=True)
        with system.open(name, "wb") as target, open(os.dup(descriptor), "rb") as source:
            source.seek(0)
            while chunk := source.read(_CHUNK):
                target.write(chunk)

    def download(self, path: str, target: str, known: RemoteEntry | None = None, at_once: int = 4) -> bool:
        from moxing.framework.file.replacing import replace_file

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
        # On the local disk first: half a file is never seen, whatever the file system.
        return LocalCopy("wb+", self, path, lambda _: False)


class _Reader(io.RawIOBase):
    """An open file of fsspec as a raw file of Python."""

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
        """The size of the file."""
        position = self._stream.tell()
        size = self.seek(0, 2)
        self._stream.seek(position)
        return size

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def _entry(relative: str, info: dict[str, Any]) -> RemoteEntry:
    moment = next(
        (info[key] for key in ("mtime", "LastModified", "last_modified", "updated", "created") if key in info), 0
    )
    seconds = moment.timestamp() if hasattr(moment, "timestamp") else moment
    nanoseconds = int(seconds * 1e9) if isinstance(seconds, int | float) else 0
    is_directory = info["type"] == "directory"
    return RemoteEntry(relative, is_directory, int(info.get("size") or 0), nanoseconds)

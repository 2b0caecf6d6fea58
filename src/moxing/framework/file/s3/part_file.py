"""The local file that a download in parts writes into, and how a later download finds and resumes it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

from moxing.framework.file.s3.object_client import ObjectInfo

PART_SIZE = 8 << 20


class DiskError(Exception):
    """A failure of the disk. It must not count as a failure of the connection, which would be retried."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


@contextlib.contextmanager
def unwrap_disk_errors() -> Iterator[None]:
    """Raises the OSError inside of a DiskError."""
    try:
        yield
    except DiskError as error:
        raise error.error from None


class FileRange:
    """A range of a file that is filled from its start; a `Sink` for the content of a response."""

    def __init__(self, descriptor: int, start: int) -> None:
        self._descriptor, self._start, self._length = descriptor, start, 0

    def __len__(self) -> int:
        return self._length

    def __iadd__(self, chunk: bytes | bytearray) -> FileRange:
        view = memoryview(chunk)
        while view:
            try:
                written = os.pwrite(self._descriptor, view, self._start + self._length)
            except OSError as error:
                raise DiskError(error) from None
            view, self._length = view[written:], self._length + written
        return self

    def clear(self) -> None:
        """Starts over."""
        self._length = 0


@dataclass
class PartFile:
    """The content that has arrived, followed by one byte per part: 1 if the part is complete."""

    path: str
    descriptor: int
    size: int

    @property
    def _count(self) -> int:
        return -(-self.size // PART_SIZE)

    def missing(self) -> list[int]:
        """Returns the numbers of the parts that are still to be downloaded."""
        marks = os.pread(self.descriptor, self._count, self.size).ljust(self._count, b"\0")
        return [number for number, mark in enumerate(marks) if mark != 1]

    def part(self, number: int) -> FileRange:
        """Returns where a part is written."""
        return FileRange(self.descriptor, number * PART_SIZE)

    def write_part(self, number: int, content: bytearray) -> None:
        """Writes a part that is in memory already."""
        with unwrap_disk_errors():
            part = self.part(number)
            part += content
        self.mark_complete(number)

    def mark_complete(self, number: int) -> None:
        """Records that a part is complete."""
        os.pwrite(self.descriptor, b"\1", self.size + number)

    def md5(self) -> str:
        """Returns the MD5 of the whole content."""
        digest = hashlib.md5(usedforsecurity=False)
        for start in range(0, self.size, PART_SIZE):
            digest.update(os.pread(self.descriptor, min(PART_SIZE, self.size - start), start))
        return digest.hexdigest()

    def finish(self, target: str) -> None:
        """Removes the marks and renames the file to `target`."""
        os.ftruncate(self.descriptor, self.size)
        with contextlib.suppress(FileNotFoundError):
            os.fchmod(self.descriptor, os.stat(target).st_mode & 0o777)
        os.replace(self.path, os.path.realpath(target))

    def discard(self) -> None:
        """Removes the file: it cannot be resumed."""
        os.unlink(self.path)


@contextlib.contextmanager
def open_part_file(target: str, url: str, info: ObjectInfo) -> Iterator[PartFile]:
    """Opens the part file for this version of the object. Two processes at the same time get one each."""
    real = os.path.realpath(target)
    directory = os.path.dirname(real)
    stem = f".mox-{_digest(os.path.basename(real))}"
    # The boot ID: after a crash of the machine, parts that are marked complete may have been lost.
    version = _digest(url, info.etag, str(info.size), _boot_id())
    path = os.path.join(directory, f"{stem}-{version}.part")
    descriptor = _open_locked(path)
    if descriptor is None:
        path, descriptor = _open_second(directory, stem)
        version = ""
    try:
        yield PartFile(path, descriptor, info.size)
        _remove_stale(directory, stem)
    except BaseException:
        if not version or not info.etag:
            # No later download could find it, or know its version.
            with contextlib.suppress(OSError):
                os.unlink(path)
        raise
    finally:
        os.close(descriptor)


def _open_locked(path: str) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its previous owner may have renamed it in between.
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _open_second(directory: str, stem: str) -> tuple[str, int]:
    """Opens another part file if the first is in use. It is locked, too, or it would count as stale."""
    while True:
        path = os.path.join(directory, f"{stem}-{os.urandom(8).hex()}.part")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.exists(path):
                return path, descriptor
        except BlockingIOError:
            pass
        except OSError:
            # The file system has no locks: then nobody removes it either.
            return path, descriptor
        # Another process removed it before it was locked.
        os.close(descriptor)


def _remove_stale(directory: str, stem: str) -> None:
    """Removes part files of other versions of the same target, unless another process uses them."""
    for name in os.listdir(directory):
        if name.startswith(f"{stem}-") and name.endswith(".part"):
            path = os.path.join(directory, name)
            with contextlib.suppress(OSError):
                descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(path)
                finally:
                    os.close(descriptor)


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode(errors="surrogateescape")).hexdigest()[:16]


def _boot_id() -> str:
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
    return ""

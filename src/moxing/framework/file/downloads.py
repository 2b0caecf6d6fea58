"""Objects that become local files: in parts for large ones, continued where an earlier attempt was cut off."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import itertools
import os
import stat as stat_module
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moxing.framework.file.errors import MoxFileReadException
from moxing.framework.file.progress import advance
from moxing.framework.file.replacing import check_target, replace_file
from moxing.framework.file.responses import StoreResponse

if TYPE_CHECKING:
    from moxing.framework.file.entries import RemoteEntry
    from moxing.framework.file.s3_client import Client, ObjectInfo

PART_SIZE = 8 << 20
_ARGUMENT = "dst_url"


def download(
    client: Client, bucket: str, key: str, target: str, known: RemoteEntry | None = None, at_once: int = 4
) -> bool:
    """Makes the local file `target` of an object; False where there is no object.

    The file appears when it is complete. A large one grows in `.mox-*.part` beside it, which a later call for the same
    version of the object continues. It is not flushed to the disk: the store still has it.

    Args:
      client: The client of the store.
      bucket: The bucket.
      key: The key.
      target: The local path, in a directory that exists.
      known: What a listing said about the object.
      at_once: How many parts are under way at a time.

    Raises:
      MoxFileReadException: The content did not arrive; nothing has changed under the name `target`.
    """
    first = None
    if known is None or known.length <= PART_SIZE:
        # Whether there is more is in the answer, so that most files take one request.
        found = client.get(bucket, key, 0, PART_SIZE if known is None or known.length else None)
        if found is None:
            return False
        content, info = found
        if len(content) == info.size:
            replace_file(target, _ARGUMENT, lambda stream: stream.write(content), durable=False)
            advance(info.size)
            return True
        first = content[:PART_SIZE]
    else:
        head = client.head(bucket, key)
        if head is None:
            return False
        info = head
    existing = check_target(target, _ARGUMENT)
    if existing is not None and not stat_module.S_ISREG(existing.st_mode):
        _write_through(client, bucket, key, target, info)
    else:
        _download_parts(client, bucket, key, target, info, at_once, first)
    return True


def _write_through(client: Client, bucket: str, key: str, target: str, info: ObjectInfo) -> None:
    """To a device or a pipe: from front to back, under its own name."""
    url = client.url(bucket, key)
    digest = hashlib.md5(usedforsecurity=False)
    with open(target, "wb") as stream:
        for start in range(0, info.size, PART_SIZE):
            found = client.get(bucket, key, start, min(start + PART_SIZE, info.size), info.etag or None)
            if found is None:
                raise _stale(url, "the object was removed while it was read")
            stream.write(found[0])
            digest.update(found[0])
            advance(len(found[0]))
    if info.md5 is not None and digest.hexdigest() != info.md5:
        raise _stale(url, "the content does not have the MD5 of the object")


def _download_parts(
    client: Client, bucket: str, key: str, target: str, info: ObjectInfo, at_once: int, first: bytearray | None
) -> None:
    url = client.url(bucket, key)
    with _open_part_file(target, url, info) as part_file:
        if first is not None:
            part_file.put(0, first)
        missing = part_file.missing()
        # What an earlier attempt got is there already.
        advance(info.size - sum(min(PART_SIZE, info.size - number * PART_SIZE) for number in missing))

        def fetch(number: int) -> None:
            start = number * PART_SIZE
            end = min(start + PART_SIZE, info.size)
            # Straight into the file: parts in memory would be allocated and given back all the time.
            with _disk_errors():
                found = client.get_into(part_file.place(number), bucket, key, start, end, info.etag or None)
            if found is None:
                raise _stale(url, "the object was removed while it was read")
            part_file.mark(number)
            advance(end - start)

        with ThreadPoolExecutor(at_once, thread_name_prefix="mox-part") as pool:
            # No more than are under way: when a process ends, Python waits for all that a pool was given.
            numbers = iter(missing)
            futures = {pool.submit(fetch, number) for number in itertools.islice(numbers, at_once)}
            try:
                while futures:
                    done, futures = wait(futures, return_when=FIRST_COMPLETED)
                    for future in done:
                        future.result()
                    futures |= {pool.submit(fetch, number) for number in itertools.islice(numbers, len(done))}
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        if info.md5 is not None and part_file.md5() != info.md5:
            part_file.discard()
            raise _stale(url, "the content does not have the MD5 of the object")
        part_file.finish(target)


def _stale(url: str, message: str) -> MoxFileReadException:
    return MoxFileReadException(StoreResponse(0, "Damaged", message), errno.EIO, f"GET: {message}", url)


class _DiskError(Exception):
    """A failure of the disk, which must not pass for one of the connection: repeating the request would not help."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


@contextlib.contextmanager
def _disk_errors() -> Iterator[None]:
    """Failures of the disk as what they are, outside of the client."""
    try:
        yield
    except _DiskError as error:
        raise error.error from None


class _Place:
    """A piece of a file that is filled from its beginning."""

    def __init__(self, descriptor: int, start: int) -> None:
        self._descriptor, self._start, self._length = descriptor, start, 0

    def __len__(self) -> int:
        return self._length

    def __iadd__(self, chunk: bytes | bytearray) -> _Place:
        view = memoryview(chunk)
        while view:
            try:
                written = os.pwrite(self._descriptor, view, self._start + self._length)
            except OSError as error:
                raise _DiskError(error) from None
            view, self._length = view[written:], self._length + written
        return self

    def clear(self) -> None:
        """Begins again."""
        self._length = 0


@dataclass
class _PartFile:
    """The content as far as it has arrived, and behind it one byte for every part: 1 when the part is there."""

    path: str
    descriptor: int
    size: int

    @property
    def _count(self) -> int:
        return -(-self.size // PART_SIZE)

    def missing(self) -> list[int]:
        """The numbers of the parts that are to be fetched."""
        marks = os.pread(self.descriptor, self._count, self.size).ljust(self._count, b"\0")
        return [number for number, mark in enumerate(marks) if mark != 1]

    def place(self, number: int) -> _Place:
        """Where a part is written."""
        return _Place(self.descriptor, number * PART_SIZE)

    def put(self, number: int, content: bytearray) -> None:
        """Writes a part that has arrived in memory."""
        with _disk_errors():
            place = self.place(number)
            place += content
        self.mark(number)

    def mark(self, number: int) -> None:
        """Notes that a part is there."""
        os.pwrite(self.descriptor, b"\1", self.size + number)

    def md5(self) -> str:
        """The MD5 of the whole content."""
        digest = hashlib.md5(usedforsecurity=False)
        for start in range(0, self.size, PART_SIZE):
            digest.update(os.pread(self.descriptor, min(PART_SIZE, self.size - start), start))
        return digest.hexdigest()

    def finish(self, target: str) -> None:
        """Gives the file its name."""
        os.ftruncate(self.descriptor, self.size)
        with contextlib.suppress(FileNotFoundError):
            os.fchmod(self.descriptor, os.stat(target).st_mode & 0o777)
        os.replace(self.path, os.path.realpath(target))

    def discard(self) -> None:
        """Removes what cannot be continued."""
        os.unlink(self.path)


@contextlib.contextmanager
def _open_part_file(target: str, url: str, info: ObjectInfo) -> Iterator[_PartFile]:
    """The part file for this version of the object. Two processes at once get one each."""
    real = os.path.realpath(target)
    directory = os.path.dirname(real)
    stem = f".mox-{_digest(os.path.basename(real))}"
    # What was written before the machine failed may have lost parts whose marks are there.
    version = _digest(url, info.etag, str(info.size), _boot_id())
    path = os.path.join(directory, f"{stem}-{version}.part")
    descriptor = _open_locked(path)
    if descriptor is None:
        path, descriptor = _open_another(directory, stem)
        version = ""
    try:
        yield _PartFile(path, descriptor, info.size)
        _remove_older(directory, stem)
    except BaseException:
        if not version or not info.etag:
            # Nobody could find it again, or know of which version it is.
            with contextlib.suppress(OSError):
                os.unlink(path)
        raise
    finally:
        os.close(descriptor)


def _open_locked(path: str) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its former owner may have given it another name in between.
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _open_another(directory: str, stem: str) -> tuple[str, int]:
    """A part file beside the one that somebody is at work on. It is locked, too, or it would pass for an old one."""
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
            # No locks here: then nobody removes it either.
            return path, descriptor
        # Somebody found it before it was locked.
        os.close(descriptor)


def _remove_older(directory: str, stem: str) -> None:
    """Removes part files of other versions of the same target, unless someone is at work on them."""
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

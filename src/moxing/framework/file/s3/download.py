"""Downloads an object to a local file: large objects in parts, resumed after an interruption."""

from __future__ import annotations

import errno
import hashlib
import itertools
import stat as stat_module
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moxing.framework.file.atomic_write import check_target, replace_file
from moxing.framework.file.errors import DAMAGED, MoxFileReadException, StoreResponse
from moxing.framework.file.progress import advance
from moxing.framework.file.s3 import part_file
from moxing.framework.file.s3.client import ByteRange
from moxing.framework.file.s3.object_client import ObjectInfo
from moxing.framework.util.thread_pool import ThreadPool

if TYPE_CHECKING:
    from moxing.framework.file.s3.client import S3Client

_ARGUMENT = "dst_url"


@dataclass(frozen=True)
class Download:
    """The download of one object to `target`, a local path in a directory that exists.

    The file appears when it is complete. A large one grows in `.mox-*.part` next to it, which a later download of the
    same version resumes. It is not flushed to the disk: the store still has it.
    """

    client: S3Client
    bucket: str
    key: str
    target: str
    concurrency: int = 4

    def run(self, length: int | None = None) -> bool:
        """Downloads the object; returns False if it does not exist.

        Args:
          length: The size of the object, if known from a listing.

        Raises:
          MoxFileReadException: The content did not arrive. `target` is unchanged.
        """
        first = None
        if length is None or length <= part_file.PART_SIZE:
            # The response says whether there is more, so most files take one request.
            end = part_file.PART_SIZE if length is None or length else None
            found = self.client.get(self.bucket, self.key, 0, end)
            if found is None:
                return False
            content, info = found
            if len(content) == info.size:
                replace_file(self.target, _ARGUMENT, lambda stream: stream.write(content), durable=False)
                advance(info.size)
                return True
            first = content[: part_file.PART_SIZE]
        else:
            head = self.client.head(self.bucket, self.key)
            if head is None:
                return False
            info = head
        existing = check_target(self.target, _ARGUMENT)
        if existing is not None and not stat_module.S_ISREG(existing.st_mode):
            self._write_sequentially(info)
        else:
            self._write_parts(info, first)
        return True

    def _write_sequentially(self, info: ObjectInfo) -> None:
        """Writes to a device or pipe, which cannot be replaced by a rename."""
        digest = hashlib.md5(usedforsecurity=False)
        with open(self.target, "wb") as stream:
            for start in range(0, info.size, part_file.PART_SIZE):
                end = min(start + part_file.PART_SIZE, info.size)
                found = self.client.get(self.bucket, self.key, start, end, info.etag or None)
                if found is None:
                    raise self._failure("the object was removed while it was read")
                stream.write(found[0])
                digest.update(found[0])
                advance(len(found[0]))
        if info.md5 is not None and digest.hexdigest() != info.md5:
            raise self._failure("the content does not have the MD5 of the object")

    def _write_parts(self, info: ObjectInfo, first: bytearray | None) -> None:
        with part_file.open_part_file(self.target, self.client.url(self.bucket, self.key), info) as parts:
            if first is not None:
                parts.write_part(0, first)
            missing = parts.missing()
            # Count what an earlier download got.
            sizes = (min(part_file.PART_SIZE, info.size - number * part_file.PART_SIZE) for number in missing)
            advance(info.size - sum(sizes))
            self._fetch_all(parts, missing, info)
            if info.md5 is not None and parts.md5() != info.md5:
                parts.discard()
                raise self._failure("the content does not have the MD5 of the object")
            parts.finish(self.target)

    def _fetch_all(self, parts: part_file.PartFile, missing: list[int], info: ObjectInfo) -> None:
        with ThreadPool(self.concurrency, thread_name_prefix="mox-part") as pool:
            # Submit only what is in flight: when a process ends, Python waits for everything that was submitted.
            numbers = iter(missing)
            futures = {
                pool.submit(self._fetch, parts, number, info) for number in itertools.islice(numbers, self.concurrency)
            }
            try:
                while futures:
                    done, futures = wait(futures, return_when=FIRST_COMPLETED)
                    for future in done:
                        future.result()
                    following = itertools.islice(numbers, len(done))
                    futures |= {pool.submit(self._fetch, parts, number, info) for number in following}
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _fetch(self, parts: part_file.PartFile, number: int, info: ObjectInfo) -> None:
        start = number * part_file.PART_SIZE
        end = min(start + part_file.PART_SIZE, info.size)
        wanted = ByteRange(start, end, info.etag or None)
        # Straight into the file: buffers for whole parts would be allocated and freed all the time.
        with part_file.unwrap_disk_errors():
            found = self.client.get_into(parts.part(number), self.bucket, self.key, wanted)
        if found is None:
            raise self._failure("the object was removed while it was read")
        parts.mark_complete(number)
        advance(end - start)

    def _failure(self, message: str) -> MoxFileReadException:
        url = self.client.url(self.bucket, self.key)
        return MoxFileReadException(StoreResponse(0, DAMAGED, message), errno.EIO, f"GET: {message}", url)

"""Objects that are too large for one request: uploaded or copied in parts, several at a time."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING

from moxing.framework.file.errors import MoxFileRespException
from moxing.framework.file.progress import advance
from moxing.framework.file.responses import parse_error
from moxing.framework.file.s3_client import ObjectInfo, copy_source, has_element
from moxing.framework.file.s3_http import CRC_HEADER, Answer, Body, content_crc32, content_md5
from moxing.framework.file.s3_xml import Part, find_text, make_complete_body

if TYPE_CHECKING:
    from moxing.framework.file.s3_client import Client

#: What is smaller goes in one request.
PART_SIZE = 8 << 20
_MOST_PARTS = 10_000
_COPY_PART_SIZE = 256 << 20
#: What a copy keeps beside the content; what users add themselves has names that begin with x-amz-meta-.
_KEPT = ("cache-control", "content-disposition", "content-encoding", "content-language", "content-type", "expires")
_AT_ONCE = 4


def part_size_for(size: int, smallest: int = PART_SIZE) -> int:
    """The size of the parts of an object: the usual one, unless that made more parts than a store takes.

    Example:
      >>> part_size_for(1 << 30), part_size_for(1 << 40)
      (8388608, 109951163)
    """
    return max(smallest, -(-size // _MOST_PARTS))


class MultipartUpload:
    """An upload in parts. The object appears with `complete` and not before; `abort` leaves nothing.

    `write_part_from` returns when there is room for one more part; the requests are made by threads.
    """

    def __init__(
        self, client: Client, bucket: str, key: str, at_once: int = _AT_ONCE, headers: dict[str, str] | None = None
    ) -> None:
        self._client, self._bucket, self._key = client, bucket, key
        # Parts that are copied have no checksums of ours.
        headers = {"x-amz-checksum-algorithm": "CRC32"} if headers is None else headers
        answer = client.send("POST", bucket, key, query={"uploads": ""}, headers=headers, check=has_element("UploadId"))
        self._id = find_text(bytes(answer.body), "UploadId") or ""
        # A store that does not say so does not compare it: its parts get an MD5, which every store compares.
        self._has_crc = answer.headers.get("x-amz-checksum-algorithm", "").upper() == "CRC32"
        self._at_once = at_once
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="mox-part")
        self._parts: list[Future[Part]] = []

    def write_part_from(self, read: Callable[[], Body]) -> None:
        """Uploads the next part, whose content the thread gets itself."""
        self.submit(lambda number: self._put(number, read()))

    def send_all(self, parts: Iterable[Callable[[], Body]]) -> None:
        """Uploads all parts and completes; after a failure nothing is left of it."""
        try:
            for part in parts:
                self.write_part_from(part)
        except BaseException:
            self.abort()
            raise
        self.complete()

    def copy_part(self, source: str, start: int, end: int, etag: str) -> None:
        """Takes the next part from another object of the store."""
        self.submit(lambda number: self._copy(number, source, start, end, etag))

    def submit(self, make_part: Callable[[int], Part]) -> None:
        """Has a thread make the next part, of which it is told the number."""
        running = [future for future in self._parts if not future.done()]
        if len(running) >= self._at_once:
            wait(running, return_when=FIRST_COMPLETED)
        for future in self._parts:
            # The first failure ends the upload while the rest of the content is still to come.
            if future.done() and future.exception() is not None:
                future.result()
        number = len(self._parts) + 1
        try:
            self._parts.append(self._pool.submit(make_part, number))
        except RuntimeError:
            # The process is about to end and starts no threads any more; a file may still be open.
            done: Future[Part] = Future()
            done.set_result(make_part(number))
            self._parts.append(done)

    def _put(self, number: int, body: Body) -> Part:
        crc = content_crc32(body) if self._has_crc else ""
        headers = {CRC_HEADER: crc} if crc else {"content-md5": content_md5(body)}
        query = self._part(number)
        answer = self._client.send(
            "PUT", self._bucket, self._key, query, headers, body, check=lambda found: "etag" in found.headers
        )
        advance(len(body))
        return Part(answer.headers["etag"], crc)

    def _copy(self, number: int, source: str, start: int, end: int, etag: str) -> Part:
        headers = {
            "x-amz-copy-source": source,
            "x-amz-copy-source-range": f"bytes={start}-{end - 1}",
            "x-amz-copy-source-if-match": etag,
        }
        answer = self._client.send(
            "PUT", self._bucket, self._key, self._part(number), headers, check=has_element("ETag")
        )
        return Part(find_text(bytes(answer.body), "ETag") or "")

    def _part(self, number: int) -> dict[str, str]:
        return {"partNumber": str(number), "uploadId": self._id}

    def complete(self) -> None:
        """Makes the object of all parts."""
        try:
            parts = [future.result() for future in self._parts]
            body = make_complete_body(parts)
            answer = self._client.send(
                "POST",
                self._bucket,
                self._key,
                query={"uploadId": self._id},
                body=body,
                accept=(404,),
                check=has_element("ETag"),
            )
            # 404 for an upload that is not there is the answer to a repetition, if the first answer was lost.
            if answer.status == 404 and (answer.attempt == 1 or not self._is_there(parts)):
                raise self._broken(answer)
        except BaseException:
            self.abort()
            raise
        self._pool.shutdown()

    def _is_there(self, parts: list[Part]) -> bool:
        """Whether the object is the one of these parts: its ETag is the MD5 of theirs, and their number."""
        info, own = self._client.head(self._bucket, self._key), combined_etag(parts)
        return info is not None and own is not None and info.etag.strip('"').lower() == own

    def abort(self) -> None:
        """Gives up: the parts are removed from the store."""
        self._pool.shutdown(cancel_futures=True)
        with suppress(OSError):
            self._client.send("DELETE", self._bucket, self._key, query={"uploadId": self._id}, accept=(404,))

    def _broken(self, answer: Answer) -> MoxFileRespException:
        response = parse_error(answer.status, answer.headers, bytes(answer.body))
        url = self._client.url(self._bucket, self._key)
        return MoxFileRespException(response, errno.EIO, f"upload: the parts were not put together: {response}", url)


def combined_etag(parts: list[Part]) -> str | None:
    """The ETag of an object that is made of these parts; None if theirs are no MD5s.

    Example:
      >>> combined_etag([Part('"5d41402abc4b2a76b9719d911017c592"')])
      '62109206880d38a4010a98e11243924a-1'
    """
    try:
        digests = b"".join(bytes.fromhex(part.etag.strip('"')) for part in parts)
    except ValueError:
        return None
    return f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(parts)}"


def copy_in_parts(client: Client, source: tuple[str, str], info: ObjectInfo, bucket: str, key: str) -> None:
    """Copies a large object inside the store, with its type and the like, as a copy in one request does."""
    size = part_size_for(info.size, _COPY_PART_SIZE)
    found = client.send("HEAD", *source).headers
    kept = {name: value for name, value in found.items() if name in _KEPT or name.startswith("x-amz-meta-")}
    upload = MultipartUpload(client, bucket, key, headers=kept)
    try:
        for start in range(0, info.size, size):
            upload.copy_part(copy_source(*source), start, min(start + size, info.size), info.etag)
    except BaseException:
        upload.abort()
        raise
    upload.complete()

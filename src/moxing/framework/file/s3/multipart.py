"""Objects that are too large for one request: uploaded or copied in parts, several at a time."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from typing import TYPE_CHECKING

from moxing.framework.file.errors import MoxFileRespException
from moxing.framework.file.progress import advance
from moxing.framework.file.s3.etags import combined_etag, part_size_for
from moxing.framework.file.s3.http import CRC_HEADER, Request, Response, content_crc32, content_md5
from moxing.framework.file.s3.object_client import Body, ObjectInfo
from moxing.framework.file.s3.responses import parse_error
from moxing.framework.file.s3.signing import quote_key
from moxing.framework.file.s3.xml import Part, find_text, make_complete_body
from moxing.framework.util.thread_pool import ThreadPool

if TYPE_CHECKING:
    from moxing.framework.file.s3.client import S3Client

_COPY_PART_SIZE = 256 << 20
#: Headers that a copy keeps, besides the user's own, which start with x-amz-meta-.
_COPIED_HEADERS = (
    *("cache-control", "content-disposition", "content-encoding", "content-language", "content-type", "expires"),
)


class MultipartUpload:
    """An upload in parts. The object appears with `complete`; `abort` leaves nothing behind.

    Adding a part blocks while `concurrency` parts are in flight. Threads send the requests.
    """

    def __init__(
        self, client: S3Client, bucket: str, key: str, concurrency: int = 4, headers: dict[str, str] | None = None
    ) -> None:
        self._client, self._bucket, self._key = client, bucket, key
        # Parts that are copied carry no checksum of ours.
        headers = {"x-amz-checksum-algorithm": "CRC32"} if headers is None else headers
        request = Request("POST", bucket, key, {"uploads": ""}, headers)
        response = client.send(request, is_complete=has_element("UploadId"))
        self._id = find_text(bytes(response.body), "UploadId") or ""
        # A store that does not confirm the CRC does not check it: send an MD5 instead, which every store checks.
        self._has_crc = response.headers.get("x-amz-checksum-algorithm", "").upper() == "CRC32"
        self._concurrency = concurrency
        self._pool = ThreadPool(concurrency, thread_name_prefix="mox-part")
        self._parts: list[Future[Part]] = []

    def add_part(self, read: Callable[[], Body]) -> None:
        """Starts the next part. A worker thread calls `read` for its content."""
        self._submit(lambda number: self._put(number, read()))

    def add_all(self, parts: Iterable[Callable[[], Body]]) -> None:
        """Uploads all parts and completes the object; aborts on failure."""
        try:
            for part in parts:
                self.add_part(part)
        except BaseException:
            self.abort()
            raise
        self.complete()

    def add_copied_part(self, source: str, start: int, end: int, etag: str) -> None:
        """Starts the next part, copied from a range of another object of the store."""
        headers = {
            "x-amz-copy-source": source,
            "x-amz-copy-source-range": f"bytes={start}-{end - 1}",
            "x-amz-copy-source-if-match": etag,
        }
        self._submit(lambda number: self._copy(number, headers))

    def _submit(self, make_part: Callable[[int], Part]) -> None:
        running = [future for future in self._parts if not future.done()]
        if len(running) >= self._concurrency:
            wait(running, return_when=FIRST_COMPLETED)
        for future in self._parts:
            # Raise the first failure now, not after the remaining parts.
            if future.done() and future.exception() is not None:
                future.result()
        number = len(self._parts) + 1
        self._parts.append(self._pool.submit(make_part, number))

    def _put(self, number: int, body: Body) -> Part:
        crc = content_crc32(body) if self._has_crc else ""
        headers = {CRC_HEADER: crc} if crc else {"content-md5": content_md5(body)}
        request = Request("PUT", self._bucket, self._key, self._part_query(number), headers, body)
        response = self._client.send(request, is_complete=lambda found: "etag" in found.headers)
        advance(len(body))
        return Part(response.headers["etag"], crc)

    def _copy(self, number: int, headers: dict[str, str]) -> Part:
        request = Request("PUT", self._bucket, self._key, self._part_query(number), headers)
        response = self._client.send(request, is_complete=has_element("ETag"))
        return Part(find_text(bytes(response.body), "ETag") or "")

    def _part_query(self, number: int) -> dict[str, str]:
        return {"partNumber": str(number), "uploadId": self._id}

    def complete(self) -> None:
        """Waits for all parts and creates the object."""
        try:
            parts = [future.result() for future in self._parts]
            request = Request("POST", self._bucket, self._key, {"uploadId": self._id}, body=make_complete_body(parts))
            response = self._client.send(request, accept=(404,), is_complete=has_element("ETag"))
            # If the first response was lost, the retry gets 404: the upload has been completed already.
            if response.status == 404 and (response.attempt == 1 or not self._exists(parts)):
                raise self._failure(response)
        except BaseException:
            self.abort()
            raise
        self._pool.shutdown()

    def _exists(self, parts: list[Part]) -> bool:
        """Returns whether the object in the store is made of these parts, judged by its ETag."""
        info, expected = self._client.head(self._bucket, self._key), combined_etag([part.etag for part in parts])
        return info is not None and expected is not None and info.etag.strip('"').lower() == expected

    def abort(self) -> None:
        """Cancels the upload and removes its parts from the store."""
        self._pool.shutdown(cancel_futures=True)
        with suppress(OSError):
            self._client.send(Request("DELETE", self._bucket, self._key, {"uploadId": self._id}), accept=(404,))

    def _failure(self, response: Response) -> MoxFileRespException:
        reason = parse_error(response.status, response.headers, bytes(response.body))
        url = self._client.url(self._bucket, self._key)
        return MoxFileRespException(reason, errno.EIO, f"upload: the parts could not be completed: {reason}", url)


def has_element(name: str) -> Callable[[Response], bool]:
    """Returns a check that a response contains an XML element.

    Example:
      >>> has_element('ETag')(Response(200, {}, b'<Error><Code>InternalError</Code></Error>'))
      False
    """
    return lambda response: bool(find_text(bytes(response.body), name))


def copy_source(bucket: str, key: str) -> str:
    """Returns the value of the header x-amz-copy-source.

    Example:
      >>> copy_source('bucket', 'a b')
      '/bucket/a%20b'
    """
    return f"/{bucket}/{quote_key(key)}"


def copy_in_parts(client: S3Client, source: tuple[str, str], info: ObjectInfo, bucket: str, key: str) -> None:
    """Copies a large object inside the store, with its content type and metadata, as a copy in one request does."""
    size = part_size_for(info.size, _COPY_PART_SIZE)
    found = client.send(Request("HEAD", *source)).headers
    headers = {k: v for k, v in found.items() if k in _COPIED_HEADERS or k.startswith("x-amz-meta-")}
    upload = MultipartUpload(client, bucket, key, headers=headers)
    try:
        for start in range(0, info.size, size):
            upload.add_copied_part(copy_source(*source), start, min(start + size, info.size), info.etag)
    except BaseException:
        upload.abort()
        raise
    upload.complete()

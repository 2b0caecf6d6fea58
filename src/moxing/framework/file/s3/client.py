"""The S3 client: the operations of `ObjectClient` as HTTP requests, with retries."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from moxing.framework.file.errors import DAMAGED, MoxFileReadException, MoxFileRespException, StoreResponse
from moxing.framework.file.s3.http import (
    TRANSPORT_ERRORS,
    HttpClient,
    Request,
    Response,
    Sink,
    content_md5,
    describe_transport_error,
    lower,
)
from moxing.framework.file.s3.multipart import MultipartUpload, copy_in_parts, copy_source, has_element
from moxing.framework.file.s3.object_client import Body, ListPage, ObjectInfo
from moxing.framework.file.s3.responses import make_exception, parse_error
from moxing.framework.file.s3.xml import make_delete_body, parse_delete_errors, parse_http_date, parse_list

#: Larger objects are copied in parts, so that each request of a copy finishes within the timeout.
LARGEST_COPY = 256 << 20
_DELETE_BATCH = 1000
#: After this much progress, the attempts of a transfer are counted from the start.
_RESET_ATTEMPTS_AFTER = 1 << 20


@dataclass(frozen=True)
class ByteRange:
    """The bytes from `start` up to `end` (None: the end of the object), of the version `etag` (None: any)."""

    start: int = 0
    end: int | None = None
    etag: str | None = None

    def headers(self) -> dict[str, str]:
        """Returns the headers of a request for it."""
        headers = {}
        if self.start or self.end is not None:
            headers["range"] = f"bytes={self.start}-{'' if self.end is None else self.end - 1}"
        if self.etag:
            headers["if-match"] = self.etag
        return headers


class S3Client(HttpClient):
    """An S3 store, addressed by bucket and key; implements `ObjectClient`."""

    def identity(self) -> tuple[object, object]:
        """Returns the endpoint, and everything else that decides what the client can reach."""
        return self.access.endpoint, self.access

    def head(self, bucket: str, key: str) -> ObjectInfo | None:
        """Returns size, modification time and ETag of an object, None if it does not exist."""
        response = self.send(
            Request("HEAD", bucket, key), accept=(404,), is_complete=lambda found: "content-length" in found.headers
        )
        return None if response.status == 404 else _info(response.headers, int(response.headers["content-length"]))

    def has_bucket(self, bucket: str) -> bool:
        """Returns whether the bucket exists."""
        return self.send(Request("HEAD", bucket), accept=(404,)).status != 404

    def get(
        self, bucket: str, key: str, start: int = 0, end: int | None = None, etag: str | None = None
    ) -> tuple[bytearray, ObjectInfo] | None:
        """Returns the bytes from `start` up to `end`, and the object's metadata. See `get_into`."""
        content = bytearray()
        info = self.get_into(content, bucket, key, ByteRange(start, end, etag))
        return None if info is None else (content, info)

    def get_into(self, content: Sink, bucket: str, key: str, wanted: ByteRange) -> ObjectInfo | None:
        """Appends a range of an object to `content`, which is empty at first; returns None if there is no object.

        A body that breaks off is continued from where it ended. A range beyond the end is not an error. Content that
        is the whole object is compared with the ETag if that is an MD5.

        Raises:
          MoxFileReadException: The content did not arrive, or the object is no longer the version `wanted.etag`.
          MoxFileNotExistsException: The bucket does not exist.
        """
        etag, info = wanted.etag, None
        attempt, progress = 0, 0
        while True:
            attempt += 1
            rest = replace(wanted, start=wanted.start + len(content), etag=etag)
            request = Request("GET", bucket, key, headers=rest.headers())
            retry_after, region = None, self.region(bucket)
            try:
                raw = self.open(request, region)
                headers = lower(raw.headers)
                if raw.status == 206 and _range_start(headers) != rest.start:
                    raw.close()
                    failure = StoreResponse(0, "InvalidAnswer", "the response is for another range of the object")
                elif raw.status in (200, 206):
                    info = _range_info(headers, raw.status)
                    etag = info.etag or etag
                    if raw.status == 200 and request.headers:
                        # The store does not support ranges, or has another version: start from the beginning.
                        content.clear()
                    if raw.status == 200 and (wanted.start or wanted.end is not None):
                        content += self.read_body(raw)[wanted.start : wanted.end]
                    else:
                        self.read_body(raw, content)
                    if _is_intact(content, info, wanted):
                        return info
                    content.clear()
                    failure = StoreResponse(0, DAMAGED, "the content does not have the size or MD5 of the object")
                else:
                    response = Response(raw.status, headers, self.read_body(raw))
                    failure = parse_error(response.status, headers, bytes(response.body))
                    if response.status == 404 and failure.code != "NoSuchBucket":
                        return None
                    if response.status == 416 and not len(content):
                        return _unsatisfied(headers, info)
                    if response.status == 412 and wanted.etag is not None:
                        message = "GET: the object changed while it was read"
                        raise MoxFileReadException(failure, errno.ESTALE, message, self.url(bucket, key))
                    if response.status in (412, 416):
                        # It was replaced between two attempts, and nobody has seen the start of the old one.
                        content.clear()
                        etag = None
                        failure = StoreResponse(0, "Replaced", "the object keeps being replaced")
                    if self.change_region(bucket, region, response):
                        continue
                    retry_after = headers.get("retry-after")
            except MoxFileReadException:
                raise
            except TRANSPORT_ERRORS as error:
                failure = describe_transport_error(error)
                if info is not None and _is_intact(content, info, wanted):
                    # The connection broke after the last byte.
                    return info
            if len(content) - progress >= _RESET_ATTEMPTS_AFTER:
                attempt, progress = 1, len(content)
            self.wait_or_raise(failure, request, attempt, retry_after)

    def put(self, bucket: str, key: str, body: Body) -> None:
        """Stores an object in one request. The store verifies its checksum."""
        self.send(Request("PUT", bucket, key, body=body), is_complete=lambda response: "etag" in response.headers)

    def create_bucket(self, bucket: str) -> None:
        """Creates a bucket. If it exists and is ours, this is not an error."""
        self.send(Request("PUT", bucket), accept=(409,))

    def list_pages(self, bucket: str, prefix: str, delimiter: str = "", limit: int | None = None) -> Iterator[ListPage]:
        """Lists the objects whose keys start with `prefix`, page by page."""
        limit = limit or self.access.list_max_keys
        query = {"list-type": "2", "encoding-type": "url", "max-keys": str(limit), "prefix": prefix}
        if delimiter:
            query["delimiter"] = delimiter
        pages: list[ListPage] = []

        def parse(response: Response) -> bool:
            page = parse_list(bytes(response.body))
            if page is not None:
                pages.append(page)
            return page is not None

        while True:
            request = Request("GET", bucket, query=query, shown_key=prefix)
            if self.send(request, accept=(404,), is_complete=parse).status == 404:
                return
            yield pages[-1]
            following = pages.pop().next_query
            if not following:
                return
            if all(query.get(name) == value for name, value in following.items()):
                # The store repeats the page: raise instead of looping forever.
                failure = StoreResponse(200, "InvalidAnswer", "the listing does not advance")
                raise MoxFileRespException(failure, errno.EIO, f"GET: {failure}", self.url(bucket, prefix))
            query.update(following)

    def delete(self, bucket: str, key: str) -> None:
        """Deletes an object. A missing object is not an error."""
        self.send(Request("DELETE", bucket, key), accept=(404,))

    def delete_many(self, bucket: str, keys: list[str]) -> None:
        """Deletes objects, a thousand per request."""
        # XML cannot represent control characters.
        plain = [key for key in keys if key.isprintable()]
        for key in set(keys).difference(plain):
            self.delete(bucket, key)
        for position in range(0, len(plain), _DELETE_BATCH):
            body = make_delete_body(plain[position : position + _DELETE_BATCH])
            request = Request("POST", bucket, "", {"delete": ""}, {"content-md5": content_md5(body)}, body)
            response = self.send(request, is_complete=_is_delete_result)
            # Retry each key that failed alone, with the retries and errors of a single request.
            for key in parse_delete_errors(bytes(response.body)) or ():
                self.delete(bucket, key)

    def copy(self, source: tuple[str, str], bucket: str, key: str) -> bool:
        """Copies an object inside the store; returns False if the source does not exist."""
        info = self.head(*source)
        if info is None:
            return False
        if info.size > LARGEST_COPY:
            copy_in_parts(self, source, info, bucket, key)
            return True
        request = Request("PUT", bucket, key, headers={"x-amz-copy-source": copy_source(*source)})
        # A store may answer 200 at once and report a failure in the body.
        response = self.send(request, accept=(404,), is_complete=has_element("ETag"))
        if response.status != 404:
            return True
        failure = parse_error(response.status, response.headers, bytes(response.body))
        if failure.code == "NoSuchKey":
            return False
        # The bucket of the target does not exist.
        raise make_exception(failure, "PUT", self.url(bucket, key), self.credentials_source(), response.attempt)

    def start_upload(self, bucket: str, key: str, concurrency: int = 4) -> MultipartUpload:
        """Starts an upload in parts, up to `concurrency` at a time."""
        return MultipartUpload(self, bucket, key, concurrency)

    def download(self, bucket: str, key: str, target: str, length: int | None = None, concurrency: int = 4) -> bool:
        """Downloads an object to a local path; returns False if it does not exist. `length` is a hint."""
        from moxing.framework.file.s3.download import Download

        return Download(self, bucket, key, target, concurrency).run(length)


def _is_intact(content: Sink, info: ObjectInfo, wanted: ByteRange) -> bool:
    """Returns whether all of the range is there and, if it is the whole object in memory, has the right MD5."""
    end = info.size if wanted.end is None else min(wanted.end, info.size)
    if len(content) != max(0, end - wanted.start):
        return False
    if wanted.start or len(content) != info.size or info.md5 is None or not isinstance(content, bytearray):
        return True
    return hashlib.md5(content, usedforsecurity=False).hexdigest() == info.md5


def _is_delete_result(response: Response) -> bool:
    return parse_delete_errors(bytes(response.body)) is not None


def _info(headers: dict[str, str], size: int) -> ObjectInfo:
    encrypted = "kms" in headers.get("x-amz-server-side-encryption", "") or (
        "x-amz-server-side-encryption-customer-algorithm" in headers
    )
    return ObjectInfo(size, parse_http_date(headers.get("last-modified")), headers.get("etag", ""), encrypted)


def _range_info(headers: dict[str, str], status: int) -> ObjectInfo:
    total = headers.get("content-range", "").rpartition("/")[2]
    return _info(headers, int(total) if status == 206 and total.isdigit() else int(headers.get("content-length", -1)))


def _range_start(headers: dict[str, str]) -> int | None:
    """Returns the first byte of a partial response, None if it does not say."""
    first = headers.get("content-range", "").removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdecimal() else None


def _unsatisfied(headers: dict[str, str], info: ObjectInfo | None) -> ObjectInfo:
    """Returns the metadata for a range beyond the end of the object; for an empty object, every range is."""
    total = headers.get("content-range", "").rpartition("/")[2]
    return info or _info(headers, int(total) if total.isdigit() else 0)

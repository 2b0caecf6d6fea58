"""The operations of an S3 store on objects, each of them repeated as long as it makes sense."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from moxing.framework.file.access import Access
from moxing.framework.file.errors import MoxFileReadException, MoxFileRespException
from moxing.framework.file.responses import StoreResponse, failure, parse_error
from moxing.framework.file.s3_http import (
    _FORGIVEN_AFTER,
    TRANSPORT_ERRORS,
    Answer,
    Body,
    Request,
    Requester,
    Sink,
    content_md5,
    lower,
    transport_failure,
)
from moxing.framework.file.s3_signing import quote_key
from moxing.framework.file.s3_xml import (
    ListedObject,
    ListPage,
    find_text,
    make_delete_body,
    parse_delete_errors,
    parse_http_date,
    parse_list,
)

#: Objects above this are copied in parts: a store answers when it is done, which is to be within the time limit.
LARGEST_COPY = 256 << 20
_DELETE_AT_ONCE = 1000


@dataclass(frozen=True)
class ObjectInfo:
    """What a store says about an object."""

    size: int
    mtime_nsec: int
    etag: str
    encrypted: bool = False

    @property
    def md5(self) -> str | None:
        """The MD5 of the content, where the ETag is one: not of what came in parts or is encrypted by a key service."""
        plain = self.etag.strip('"').lower()
        return plain if len(plain) == 32 and not self.encrypted and set(plain) <= set("0123456789abcdef") else None


class Client(Requester):
    """A store, by buckets and keys."""

    def __init__(self, access: Access, scheme: str) -> None:
        super().__init__(access, scheme)

    def head(self, bucket: str, key: str) -> ObjectInfo | None:
        """Size, time and ETag of an object; None where there is none."""
        answer = self.send("HEAD", bucket, key, accept=(404,), check=lambda found: "content-length" in found.headers)
        return None if answer.status == 404 else _info(answer.headers, int(answer.headers["content-length"]))

    def has_bucket(self, bucket: str) -> bool:
        """Whether there is such a bucket."""
        return self.send("HEAD", bucket, accept=(404,)).status != 404

    def get(
        self, bucket: str, key: str, start: int = 0, end: int | None = None, etag: str | None = None
    ) -> tuple[bytearray, ObjectInfo] | None:
        """The content from `start` up to before `end`, checked, and what the store says about the object.

        None where there is no object. See `get_into`.
        """
        content = bytearray()
        info = self.get_into(content, bucket, key, start, end, etag)
        return None if info is None else (content, info)

    def get_into(
        self,
        content: Sink,
        bucket: str,
        key: str,
        start: int = 0,
        end: int | None = None,
        etag: str | None = None,
    ) -> ObjectInfo | None:
        """Puts the content from `start` up to before `end` into `content`; None where there is no object.

        A body that breaks off is continued where it ended. What comes in one piece is compared with the ETag if that is
        an MD5.

        Args:
          content: Gets the bytes; empty at first.
          bucket: The bucket.
          key: The key.
          start: The first byte.
          end: The byte behind the last; None for the end of the object, and more than there is is no error.
          etag: The version that it has to be.

        Raises:
          MoxFileReadException: The content did not arrive, or the object is no longer the one of `etag`.
          MoxFileNotExistsException: There is not even the bucket.
        """
        given = etag
        info: ObjectInfo | None = None
        attempt, forgiven = 0, 0
        while True:
            attempt += 1
            request = Request("GET", bucket, key, headers=_range(start + len(content), end, etag))
            wait, region = None, self.region(bucket)
            try:
                raw = self.open(request, region)
                headers = lower(raw.headers)
                if raw.status == 206 and _range_start(headers) != start + len(content):
                    raw.close()
                    response = StoreResponse(0, "InvalidAnswer", "the answer has another part of the object")
                elif raw.status in (200, 206):
                    info = _range_info(headers, raw.status)
                    etag = info.etag or etag
                    if raw.status == 200 and request.headers:
                        # The store does not know ranges, or has another version: all from the beginning.
                        content.clear()
                    if raw.status == 200 and (start or end is not None):
                        content += self.read_body(raw)[start:end]
                    else:
                        self.read_body(raw, content)
                    if _is_intact(content, info, start, end):
                        return info
                    content.clear()
                    response = StoreResponse(0, "Damaged", "the content has not the size or MD5 of the object")
                else:
                    answer = Answer(raw.status, headers, self.read_body(raw))
                    response = parse_error(answer.status, answer.headers, bytes(answer.body))
                    if answer.status == 404 and response.code != "NoSuchBucket":
                        return None
                    if answer.status == 416 and not len(content):
                        return _unsatisfied(answer.headers, info)
                    if answer.status == 412 and given is not None:
                        message = "GET: the object changed while it was read"
                        raise MoxFileReadException(response, errno.ESTALE, message, self.url(bucket, key))
                    if answer.status in (412, 416):
                        # It was replaced between two attempts; nobody has seen the beginning of the old one.
                        content.clear()
                        etag = None
                        response = StoreResponse(0, "Replaced", "the object is replaced again and again")
                    if self.change_region(bucket, region, answer):
                        continue
                    wait = answer.headers.get("retry-after")
            except MoxFileReadException:
                raise
            except TRANSPORT_ERRORS as error:
                response = transport_failure(error)
                if info is not None and _is_intact(content, info, start, end):
                    # It broke behind the last byte.
                    return info
            if len(content) - forgiven >= _FORGIVEN_AFTER:
                attempt, forgiven = 1, len(content)
            self.pause_or_fail(response, request, attempt, wait)

    def put(self, bucket: str, key: str, body: Body) -> None:
        """Stores an object in one request; the store compares its checksum."""
        self.send("PUT", bucket, key, body=body, check=lambda answer: "etag" in answer.headers)

    def create_bucket(self, bucket: str) -> None:
        """Makes a bucket; one that is there and ours is no error."""
        self.send("PUT", bucket, accept=(409,))

    def list_pages(self, bucket: str, prefix: str, delimiter: str = "", limit: int | None = None) -> Iterator[ListPage]:
        """The objects whose keys begin with `prefix`, page by page."""
        limit = limit or self.access.list_max_keys
        query = {"list-type": "2", "encoding-type": "url", "max-keys": str(limit), "prefix": prefix}
        if delimiter:
            query["delimiter"] = delimiter
        pages: list[ListPage] = []

        def parse(answer: Answer) -> bool:
            page = parse_list(bytes(answer.body))
            if page is not None:
                pages.append(page)
            return page is not None

        while self.send("GET", bucket, query=query, accept=(404,), check=parse, about=prefix).status != 404:
            yield pages[-1]
            following = pages.pop().next_query
            if not following:
                return
            if all(query.get(name) == value for name, value in following.items()):
                # The same page again and again: better an end than none.
                answer = StoreResponse(200, "InvalidAnswer", "the listing does not go on")
                raise MoxFileRespException(answer, errno.EIO, f"GET: {answer}", self.url(bucket, prefix))
            query.update(following)

    def list_objects(self, bucket: str, prefix: str) -> Iterator[ListedObject]:
        """All objects whose keys begin with `prefix`."""
        for page in self.list_pages(bucket, prefix):
            yield from page.objects

    def delete(self, bucket: str, key: str) -> None:
        """Removes an object; one that is not there is no error."""
        self.send("DELETE", bucket, key, accept=(404,))

    def delete_many(self, bucket: str, keys: list[str]) -> None:
        """Removes objects, a thousand with a request."""
        # XML has no way to write control characters.
        plain = [key for key in keys if key.isprintable()]
        for key in set(keys).difference(plain):
            self.delete(bucket, key)
        for position in range(0, len(plain), _DELETE_AT_ONCE):
            body = make_delete_body(plain[position : position + _DELETE_AT_ONCE])
            headers = {"content-md5": content_md5(body)}
            answer = self.send(
                "POST", bucket, query={"delete": ""}, headers=headers, body=body, check=_is_list_of_deleted
            )
            # What the answer lists as failed is tried alone, with the repetitions and errors of a single request.
            for key in parse_delete_errors(bytes(answer.body)) or ():
                self.delete(bucket, key)

    def copy(self, source: tuple[str, str], bucket: str, key: str) -> bool:
        """Copies an object inside the store; False where there is no source."""
        info = self.head(*source)
        if info is None:
            return False
        if info.size > LARGEST_COPY:
            from moxing.framework.file.s3_multipart import copy_in_parts

            copy_in_parts(self, source, info, bucket, key)
            return True
        headers = {"x-amz-copy-source": copy_source(*source)}
        # A store may answer 200 at once and tell of a failure in the body.
        answer = self.send("PUT", bucket, key, headers=headers, accept=(404,), check=has_element("ETag"))
        if answer.status != 404:
            return True
        response = parse_error(answer.status, answer.headers, bytes(answer.body))
        if response.code == "NoSuchKey":
            return False
        # It is the bucket of the copy that is not there.
        raise failure(response, "PUT", self.url(bucket, key), self.access.credentials.source, answer.attempt)


def _is_intact(content: Sink, info: ObjectInfo, start: int, end: int | None) -> bool:
    """Whether it is all that was asked for, and what the MD5 says where it is that of just this."""
    if len(content) != max(0, (info.size if end is None else min(end, info.size)) - start):
        return False
    if start or len(content) != info.size or info.md5 is None or not isinstance(content, bytearray):
        return True
    return hashlib.md5(content, usedforsecurity=False).hexdigest() == info.md5


def _is_list_of_deleted(answer: Answer) -> bool:
    return parse_delete_errors(bytes(answer.body)) is not None


def has_element(name: str) -> Callable[[Answer], bool]:
    """Whether an answer has this element in it.

    Example:
      >>> has_element('ETag')(Answer(200, {}, b'<Error><Code>InternalError</Code></Error>'))
      False
    """
    return lambda answer: bool(find_text(bytes(answer.body), name))


def copy_source(bucket: str, key: str) -> str:
    """The source of a copy as a header names it.

    Example:
      >>> copy_source('bucket', 'a b')
      '/bucket/a%20b'
    """
    return f"/{bucket}/{quote_key(key)}"


def _range(start: int, end: int | None, etag: str | None) -> tuple[tuple[str, str], ...]:
    headers = []
    if start or end is not None:
        headers.append(("range", f"bytes={start}-{'' if end is None else end - 1}"))
    if etag:
        headers.append(("if-match", etag))
    return tuple(headers)


def _info(headers: dict[str, str], size: int) -> ObjectInfo:
    encrypted = "kms" in headers.get("x-amz-server-side-encryption", "") or (
        "x-amz-server-side-encryption-customer-algorithm" in headers
    )
    return ObjectInfo(size, parse_http_date(headers.get("last-modified")), headers.get("etag", ""), encrypted)


def _range_info(headers: dict[str, str], status: int) -> ObjectInfo:
    total = headers.get("content-range", "").rpartition("/")[2]
    return _info(headers, int(total) if status == 206 and total.isdigit() else int(headers.get("content-length", -1)))


def _range_start(headers: dict[str, str]) -> int | None:
    """The first byte that a part of an object has, None where the answer does not say it."""
    first = headers.get("content-range", "").removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdecimal() else None


def _unsatisfied(headers: dict[str, str], info: ObjectInfo | None) -> ObjectInfo:
    """A range behind the end: of an empty object every range is."""
    total = headers.get("content-range", "").rpartition("/")[2]
    return info or _info(headers, int(total) if total.isdigit() else 0)

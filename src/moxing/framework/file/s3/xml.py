"""The XML of S3: listings, batches of deletions, parts of an upload."""

from __future__ import annotations

import calendar
from email.utils import parsedate_tz
from typing import NamedTuple
from urllib.parse import unquote_plus
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from moxing.framework.file.s3.object_client import ListedObject, ListPage


def parse_list(body: bytes) -> ListPage | None:
    """Parses a page of ListObjectsV2, or of version 1, which older stores return; None if it is not a listing.

    Example:
      >>> page = parse_list(b'<R><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>'
      ...                   b'<NextContinuationToken>t</NextContinuationToken>'
      ...                   b'<Contents><Key>a%20b</Key><Size>3</Size></Contents></R>')
      >>> page.objects[0].key, page.next_query
      ('a b', {'continuation-token': 't'})
    """
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        return None
    texts, objects, prefixes = {}, [], []
    for item in root:
        tag = _tag(item)
        if tag == "Contents":
            objects.append({_tag(field): field.text or "" for field in item})
        elif tag == "CommonPrefixes":
            prefixes.append(next((field.text or "" for field in item if _tag(field) == "Prefix"), ""))
        else:
            texts[tag] = item.text or ""
    encoded = texts.get("EncodingType") == "url"
    listed = [
        ListedObject(
            _decode(fields["Key"], encoded),
            int(fields.get("Size") or 0),
            parse_iso_date(fields.get("LastModified", "")),
            fields.get("ETag", ""),
        )
        for fields in objects
    ]
    found = [_decode(prefix, encoded) for prefix in prefixes]
    return ListPage(listed, found, _next_query(texts, encoded, listed, found))


def _next_query(
    texts: dict[str, str], encoded: bool, objects: list[ListedObject], prefixes: list[str]
) -> dict[str, str]:
    if texts.get("IsTruncated") != "true":
        return {}
    if token := texts.get("NextContinuationToken"):
        return {"continuation-token": token}
    if marker := texts.get("NextMarker"):
        return {"marker": _decode(marker, encoded)}
    last = max([item.key for item in objects] + prefixes, default="")
    return {"marker": last} if last else {}


def _tag(item: ElementTree.Element) -> str:
    return item.tag.rpartition("}")[2]


def _decode(text: str, encoded: bool) -> str:
    return unquote_plus(text, errors="surrogateescape") if encoded else text


def make_delete_body(keys: list[str]) -> bytes:
    """Returns the body of a request that deletes many objects.

    Example:
      >>> make_delete_body(['a&b'])
      b'<Delete><Quiet>true</Quiet><Object><Key>a&amp;b</Key></Object></Delete>'
    """
    objects = "".join(f"<Object><Key>{escape(key)}</Key></Object>" for key in keys)
    return f"<Delete><Quiet>true</Quiet>{objects}</Delete>".encode()


def parse_delete_errors(body: bytes) -> list[str] | None:
    """Returns the keys that were not deleted; None if the body is not a response to such a request.

    Example:
      >>> parse_delete_errors(b'<DeleteResult><Error><Key>a</Key><Code>X</Code></Error></DeleteResult>')
      ['a']
    """
    if not (text := body.strip()):
        return []
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return None
    if _tag(root) != "DeleteResult":
        return None
    errors = [item for item in root if _tag(item) == "Error"]
    return [field.text or "" for item in errors for field in item if _tag(field) == "Key"]


class Part(NamedTuple):
    """A part of an upload, with its checksum if the upload uses checksums."""

    etag: str
    crc32: str = ""


def make_complete_body(parts: list[Part]) -> bytes:
    """Returns the body of the request that completes an upload.

    Example:
      >>> make_complete_body([Part('"x"')])[:44]
      b'<CompleteMultipartUpload><Part><PartNumber>1'
    """
    listed = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(part.etag)}</ETag>"
        + (f"<ChecksumCRC32>{part.crc32}</ChecksumCRC32>" if part.crc32 else "")
        + "</Part>"
        for number, part in enumerate(parts, 1)
    )
    return f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()


def find_text(body: bytes, name: str) -> str | None:
    """Returns the text of the first element `name`, at any depth; None if there is none.

    Example:
      >>> find_text(b'<R><UploadId>7</UploadId></R>', 'UploadId')
      '7'
    """
    if not (text := body.strip()):
        return None
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return None
    return next((item.text or "" for item in root.iter() if _tag(item) == name), None)


def parse_iso_date(text: str) -> int:
    """Parses a time of a listing, in nanoseconds since 1970; 0 if it cannot be parsed.

    Example:
      >>> parse_iso_date('1970-01-01T00:00:02.500Z')
      2500000000
    """
    try:
        date, _, clock = text.partition("T")
        clock, _, fraction = clock.rstrip("Z").partition(".")
        year, month, day = map(int, date.split("-"))
        hour, minute, second = map(int, clock.split(":"))
        seconds = calendar.timegm((year, month, day, hour, minute, second))
        return seconds * 10**9 + (int(fraction.ljust(9, "0")[:9]) if fraction else 0)
    except ValueError:
        return 0


def parse_http_date(text: str | None) -> int:
    """Parses a time of an HTTP header, in nanoseconds since 1970; 0 if it cannot be parsed.

    Example:
      >>> parse_http_date('Thu, 01 Jan 1970 00:00:02 GMT')
      2000000000
    """
    parsed = parsedate_tz(text) if text else None
    return 0 if parsed is None else (calendar.timegm(parsed[:9]) - (parsed[9] or 0)) * 10**9

"""Turns the error response of a store into an exception."""

from __future__ import annotations

import errno
from collections.abc import Mapping

from moxing.framework.file.errors import (
    NO_CREDENTIALS_CODE,
    MoxFileNotExistsException,
    MoxFileReadException,
    MoxFileRespException,
    StoreResponse,
)

#: The source of missing credentials. A reason may follow after a colon.
NO_CREDENTIALS = "no credentials"


def parse_error(status: int, headers: Mapping[str, str], body: bytes) -> StoreResponse:
    """Parses an error response. Some have no body, such as every response to HEAD.

    Example:
      >>> parse_error(404, {}, b'<Error><Code>NoSuchKey</Code><Message>gone</Message></Error>')
      StoreResponse(status=404, code='NoSuchKey', message='gone', request_id='')
    """
    fields = {}
    if body.lstrip()[:1] == b"<":
        from xml.etree import ElementTree

        try:
            fields = {item.tag.rpartition("}")[2]: item.text or "" for item in ElementTree.fromstring(body)}
        except ElementTree.ParseError:
            fields = {}
    code = fields.get("Code") or _CODES.get(status, f"Http{status}")
    request_id = fields.get("RequestId") or headers.get("x-amz-request-id") or headers.get("x-obs-request-id") or ""
    return StoreResponse(status, code, fields.get("Message", ""), request_id)


#: Codes for responses without a body.
_CODES = {
    301: "PermanentRedirect",
    400: "BadRequest",
    403: "AccessDenied",
    404: "NotFound",
    412: "PreconditionFailed",
    416: "InvalidRange",
    500: "InternalError",
    503: "ServiceUnavailable",
}


def make_exception(
    response: StoreResponse, method: str, url: str, source: str, attempts: int, host: str = "the store"
) -> OSError:
    """Returns the exception for a request that failed and is not retried.

    Args:
      response: The last response.
      method: The HTTP method.
      url: The URL of the object.
      source: Where the credentials came from.
      attempts: How often the request was sent.
      host: The address of the store, shown if it did not answer.

    Returns:
      MoxFileReadException if content did not arrive, MoxFileNotExistsException for 404, else MoxFileRespException.

    Example:
      >>> print(make_exception(StoreResponse(403, 'AccessDenied', ''), 'GET', 's3://b/k', 'set_auth', 1))
      [Errno 13] GET: 403 AccessDenied; the keys came from set_auth: 's3://b/k'
    """
    text = f"{method}: {response}"
    if response.status in (401, 403) or response.code in ("ExpiredToken", "InvalidToken"):
        if source == NO_CREDENTIALS:
            text += "; no credentials were found: call mox.file.set_auth or set ACCESS_KEY_ID and SECRET_ACCESS_KEY"
        elif source.startswith(NO_CREDENTIALS):
            text += f"; no credentials were found{source.removeprefix(NO_CREDENTIALS)}"
        else:
            text += f"; the keys came from {source}"
        return MoxFileRespException(response, errno.EACCES, text, url)
    if response.code == NO_CREDENTIALS_CODE:
        return MoxFileRespException(response, errno.EACCES, text, url)
    if not response.status:
        text += f" ({host})"
    if response.code == "NoSuchBucket":
        text = f"the bucket does not exist ({text})"
    if response.status == 404:
        return MoxFileNotExistsException(errno.ENOENT, text, url)
    if attempts > 1:
        text += f", after {attempts} attempts"
    if method == "GET" and response.is_transient:
        return MoxFileReadException(response, errno.EIO, text, url)
    return MoxFileRespException(response, errno.EIO, text, url)

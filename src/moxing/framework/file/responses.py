"""What a store answered, and which exception that is."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass

from moxing.framework.file.errors import MoxFileNotExistsException, MoxFileReadException, MoxFileRespException

BAD_CERTIFICATE = "BadCertificate"
#: The source of keys that are not there; behind a colon what may be the reason.
NO_CREDENTIALS = "no credentials"
#: Codes that mean "not now"; every 5xx and 429 does, too.
_PASSING_CODES = (
    "SlowDown",
    # The content was damaged on its way.
    "BadDigest",
    "MalformedXML",
    "XAmzContentSHA256Mismatch",
    "IncompleteBody",
    "RequestTimeout",
    "InternalError",
    "ServiceUnavailable",
    "Throttling",
    "ThrottlingException",
)


@dataclass(frozen=True)
class StoreResponse:
    """The answer of a store to a request that failed; `status` is 0 where there was none, and `code` says why.

    Example:
      >>> StoreResponse(503, 'SlowDown', 'Please reduce your request rate.', 'A1').errorCode
      'SlowDown'
    """

    status: int
    code: str
    message: str
    request_id: str = ""

    @property
    def errorCode(self) -> str:  # noqa: N802
        """The code, by its name in the OBS library."""
        return self.code

    @property
    def errorMessage(self) -> str:  # noqa: N802
        """The message, by its name in the OBS library."""
        return self.message

    @property
    def requestId(self) -> str:  # noqa: N802
        """The id of the request, by its name in the OBS library."""
        return self.request_id

    @property
    def reason(self) -> str:
        """The code and the message."""
        return f"{self.code}: {self.message}" if self.message else self.code

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed in a while."""
        if self.code == BAD_CERTIFICATE:
            return False
        return self.status in (0, 408, 429) or self.status >= 500 or self.code in _PASSING_CODES

    def __str__(self) -> str:
        status = f"{self.status} " if self.status else ""
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{status}{self.reason}{request}"


def parse_error(status: int, headers: Mapping[str, str], body: bytes) -> StoreResponse:
    """The error in an answer; some have no body, as all answers to HEAD.

    Example:
      >>> parse_error(404, {}, b'<Error><Code>NoSuchKey</Code><Message>gone</Message></Error>')
      StoreResponse(status=404, code='NoSuchKey', message='gone', request_id='')
    """
    found = {}
    if body.lstrip()[:1] == b"<":
        from xml.etree import ElementTree

        try:
            found = {item.tag.rpartition("}")[2]: item.text or "" for item in ElementTree.fromstring(body)}
        except ElementTree.ParseError:
            found = {}
    code = found.get("Code") or _NAMES.get(status, f"Http{status}")
    request_id = found.get("RequestId") or headers.get("x-amz-request-id") or headers.get("x-obs-request-id") or ""
    return StoreResponse(status, code, found.get("Message", ""), request_id)


_NAMES = {
    301: "PermanentRedirect",
    400: "BadRequest",
    403: "AccessDenied",
    404: "NotFound",
    412: "PreconditionFailed",
    416: "InvalidRange",
    500: "InternalError",
    503: "ServiceUnavailable",
}


def failure(
    response: StoreResponse, method: str, url: str, source: str, attempts: int, where: str = "the store"
) -> OSError:
    """The exception for a request that failed for good.

    Content that does not arrive is a MoxFileReadException, a refusal is a MoxFileRespException.

    Example:
      >>> print(failure(StoreResponse(403, 'AccessDenied', ''), 'GET', 's3://b/k', 'set_auth', 1))
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
    if not response.status:
        text += f" ({where})"
    if response.code == "NoSuchBucket":
        text = f"the bucket does not exist ({text})"
    if response.status == 404:
        return MoxFileNotExistsException(errno.ENOENT, text, url)
    if attempts > 1:
        text += f", after {attempts} attempts"
    if method == "GET" and response.may_pass:
        return MoxFileReadException(response, errno.EIO, text, url)
    return MoxFileRespException(response, errno.EIO, text, url)

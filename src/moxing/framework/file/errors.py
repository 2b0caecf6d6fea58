"""The exceptions of `mox.file`. Each one also derives from the built-in exception for the same failure."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from typing import Any

_BUCKET = re.compile("(s3|obs)://[^/]+/?")
#: Error codes of our own, for a request that got no answer.
BAD_CERTIFICATE = "BadCertificate"
DAMAGED = "Damaged"
NO_CREDENTIALS_CODE = "NoCredentials"
#: Error codes that mean "try again". So do status 429 and every 5xx.
_TRANSIENT_CODES = (
    "SlowDown",
    # The content was damaged on its way to the store.
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


class UnsupportedSchemeError(ValueError):
    """No backend serves the scheme of the URL. The message names the package to install.

    Example:
      >>> import moxing as mox
      >>> try:
      ...     mox.file.exists('nosuch://host/data')
      ... except mox.file.UnsupportedSchemeError as error:
      ...     print('nosuch://host/data' in str(error))
      True
    """


class MoxFileNotExistsException(FileNotFoundError):
    """The file or directory does not exist.

    Example:
      >>> import moxing as mox
      >>> try:
      ...     mox.file.stat('/no/such/file')
      ... except FileNotFoundError as error:
      ...     print(type(error).__name__)
      MoxFileNotExistsException
    """


class MoxFileNameDuplicateException(FileExistsError):
    """A file and a directory would need the same name, for example in the target of `copy_parallel`.

    Example:
      >>> issubclass(MoxFileNameDuplicateException, OSError)
      True
    """


class _ResponseException(OSError):
    """An object store reported a failure. `resp` is its response, or None if no request was sent."""

    def __init__(self, resp: Any = None, *args: Any) -> None:
        super().__init__(*(args or (resp,)))
        self.resp = resp


class MoxFileReadException(_ResponseException):
    """The file exists, but its content could not be read.

    Example:
      >>> MoxFileReadException(None, 'connection lost').resp is None
      True
    """


class MoxFileRespException(_ResponseException):
    """An object store refused a request. `resp` is its response.

    Example:
      >>> MoxFileRespException({'status': 403}).resp
      {'status': 403}
    """


@dataclass(frozen=True)
class StoreResponse:
    """The response to a failed request. `status` is 0 if there was no response; `code` then says why.

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
        """The code, under its name in the OBS SDK."""
        return self.code

    @property
    def errorMessage(self) -> str:  # noqa: N802
        """The message, under its name in the OBS SDK."""
        return self.message

    @property
    def requestId(self) -> str:  # noqa: N802
        """The request ID, under its name in the OBS SDK."""
        return self.request_id

    @property
    def reason(self) -> str:
        """Code and message."""
        return f"{self.code}: {self.message}" if self.message else self.code

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later."""
        if self.code in (BAD_CERTIFICATE, NO_CREDENTIALS_CODE):
            return False
        return self.status in (0, 408, 429) or self.status >= 500 or self.code in _TRANSIENT_CODES

    def __str__(self) -> str:
        status = f"{self.status} " if self.status else ""
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{status}{self.reason}{request}"


def is_transient(error: BaseException) -> bool:
    """Returns whether the request that raised `error` may succeed later.

    Example:
      >>> is_transient(FileNotFoundError(2, 'gone'))
      False
    """
    response = getattr(error, "resp", None)
    # A damaged object stays damaged.
    return isinstance(response, StoreResponse) and response.is_transient and response.code != DAMAGED


def not_exists(argument: str, url: str, advice: str = "no such file or directory") -> MoxFileNotExistsException:
    """Returns the exception for a missing file. It names the argument and its value.

    Example:
      >>> print(not_exists('src_url', '/data/x'))
      [Errno 2] src_url: no such file or directory: '/data/x'
      >>> print(not_exists('url', 's3://bucket'))
      [Errno 2] url: no such bucket: 's3://bucket'
    """
    if advice.startswith("no such ") and _BUCKET.fullmatch(url):
        advice = "no such bucket"
    return MoxFileNotExistsException(errno.ENOENT, f"{argument}: {advice}", url)


def is_a_directory(argument: str, url: str, advice: str) -> IsADirectoryError:
    """Returns the exception for a directory where a file is required.

    Example:
      >>> print(is_a_directory('src_url', '/data', 'give a file'))
      [Errno 21] src_url is a directory, give a file: '/data'
    """
    return IsADirectoryError(errno.EISDIR, f"{argument} is a directory, {advice}", url)


def not_a_directory(argument: str, url: str, advice: str) -> NotADirectoryError:
    """Returns the exception for a file where a directory is required.

    Example:
      >>> print(not_a_directory('src_url', '/data/x', 'give a directory'))
      [Errno 20] src_url is not a directory, give a directory: '/data/x'
    """
    return NotADirectoryError(errno.ENOTDIR, f"{argument} is not a directory, {advice}", url)

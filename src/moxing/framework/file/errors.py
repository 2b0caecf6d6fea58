"""The exceptions of `mox.file`. Each one is also the built-in exception that such a failure has in Python."""

from __future__ import annotations

import errno
import re
from typing import Any

_BUCKET = re.compile("(s3|obs)://[^/]+/?")


class UnsupportedSchemeError(ValueError):
    """A url whose scheme has no backend here; the message names the package that has one.

    Example:
      >>> import moxing as mox
      >>> try:
      ...     mox.file.exists('nosuch://host/data')
      ... except mox.file.UnsupportedSchemeError as error:
      ...     print('nosuch://host/data' in str(error))
      True
    """


class MoxFileNotExistsException(FileNotFoundError):
    """A file or directory that does not exist.

    Example:
      >>> import moxing as mox
      >>> try:
      ...     mox.file.stat('/no/such/file')
      ... except FileNotFoundError as error:
      ...     print(type(error).__name__)
      MoxFileNotExistsException
    """


class MoxFileNameDuplicateException(FileExistsError):
    """A file and a directory that would need the same name, for instance in the target of `copy_parallel`.

    Example:
      >>> issubclass(MoxFileNameDuplicateException, OSError)
      True
    """


class _ResponseException(OSError):
    """A failure that an object store reported: `resp` is its response, None where there was no request."""

    def __init__(self, resp: Any = None, *args: Any) -> None:
        super().__init__(*(args or (resp,)))
        self.resp = resp


class MoxFileReadException(_ResponseException):
    """The content of a file could not be read although the file could be opened.

    Example:
      >>> MoxFileReadException(None, 'connection lost').resp is None
      True
    """


class MoxFileRespException(_ResponseException):
    """An object store refused a request; `resp` is its answer.

    Example:
      >>> MoxFileRespException({'status': 403}).resp
      {'status': 403}
    """


def not_exists(argument: str, url: str, advice: str = "no such file or directory") -> MoxFileNotExistsException:
    """The exception for a missing file, which names the argument and the value.

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
    """The exception for a directory where a file is needed.

    Example:
      >>> print(is_a_directory('src_url', '/data', 'give a file'))
      [Errno 21] src_url is a directory, give a file: '/data'
    """
    return IsADirectoryError(errno.EISDIR, f"{argument} is a directory, {advice}", url)


def not_a_directory(argument: str, url: str, advice: str) -> NotADirectoryError:
    """The exception for a file where a directory is needed.

    Example:
      >>> print(not_a_directory('src_url', '/data/x', 'give a directory'))
      [Errno 20] src_url is not a directory, give a directory: '/data/x'
    """
    return NotADirectoryError(errno.ENOTDIR, f"{argument} is not a directory, {advice}", url)

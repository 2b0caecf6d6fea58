"""From the url that a caller passed to a path of this machine."""

from __future__ import annotations

import os
from typing import TypeAlias

from moxing.framework.file.errors import UnsupportedSchemeError

Url: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"

_SCHEME_PUNCTUATION = str.maketrans("", "", "+-.")
#: `pathlib.Path('s3://bucket')` is `s3:/bucket`: such a path never means a local directory called `s3:`.
_COLLAPSED = ("s3:/", "obs:/", "file:/")
#: A slip of the fingers, which would make a local directory of what is meant for a store.
_WITHOUT_COLON = ("s3//", "obs//")


def get_scheme(path: str) -> str | None:
    """The scheme of a url in lower case, None for a plain path.

    Example:
      >>> get_scheme('S3://bucket/a'), get_scheme('/data/a://b')
      ('s3', None)
    """
    scheme, separator, _ = path.partition("://")
    if not separator or not scheme[:1].isalpha() or not scheme.isascii():
        return None
    return scheme.lower() if scheme.translate(_SCHEME_PUNCTUATION).isalnum() else None


def local_path(url: Url, argument: str) -> str:
    """The local path for `url`, a plain path or `file:///path`. `argument` names it in error messages.

    What follows `file://` is taken as it stands, without percent-decoding, as TensorFlow does.

    Example:
      >>> local_path('file:///data/a b', 'url')
      '/data/a b'
    """
    # What nearly every call is: a plain path.
    if type(url) is str and url and "://" not in url and "\0" not in url:
        return _check_collapsed(url, argument)
    if not isinstance(url, str | bytes | os.PathLike):
        raise TypeError(f"{argument}={url!r}: expected a path as str, bytes or os.PathLike.")
    path = os.fsdecode(url)
    if not path:
        raise ValueError(f"{argument}='': expected a path.")
    if "\0" in path:
        raise ValueError(f"{argument}={path!r}: a path cannot contain a null character.")
    scheme = get_scheme(path)
    if scheme is None:
        return _check_collapsed(path, argument)
    if scheme != "file":
        raise UnsupportedSchemeError(
            f"{argument}={path!r}: object stores and other remote systems are not available in this version for this "
            "argument. Only local paths and file:// work; mox.file.copy_parallel copies the data to a local path."
        )
    rest = path[len("file://") :]
    rest = rest.removeprefix("localhost")
    if not rest.startswith("/"):
        raise UnsupportedSchemeError(f"{argument}={path!r}: a file:// url needs an absolute path, file:///path.")
    return rest


def _check_collapsed(path: str, argument: str) -> str:
    if path.lower().startswith(_COLLAPSED):
        raise UnsupportedSchemeError(
            f"{argument}={path!r}: a url has two slashes after the scheme. pathlib.Path removes one of them: "
            "pass urls as str."
        )
    if path.lower().startswith(_WITHOUT_COLON):
        scheme, _, rest = path.partition("//")
        raise UnsupportedSchemeError(f"{argument}={path!r}: expected {scheme}://{rest}, or ./{path} for a local path.")
    return path


def is_inside(path: str, directory: str) -> bool:
    """Whether a resolved path is the resolved `directory` or lies in it.

    Example:
      >>> is_inside('/a/foo/x', '/a/foo'), is_inside('/a/foo-bar/x', '/a/foo')
      (True, False)
    """
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)

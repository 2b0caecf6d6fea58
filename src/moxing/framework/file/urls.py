"""Resolves what a caller passes as a URL: to a local path, or to a backend and a path there.

This is the only module that does it. Everything else takes the result.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from moxing.framework.file.errors import UnsupportedSchemeError

if TYPE_CHECKING:
    from moxing.framework.file.remote.backend import Backend

Url: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"

_STORES = ("s3", "obs")
_BUCKET = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")
_SLASHES = re.compile("//+")
_SCHEME_PUNCTUATION = str.maketrans("", "", "+-.")
#: `pathlib.Path('s3://bucket')` is `s3:/bucket`, which never means a local directory named `s3:`.
_COLLAPSED = ("s3:/", "obs:/", "file:/")
#: A typo that would create a local directory instead of writing to the store.
_WITHOUT_COLON = ("s3//", "obs//")


def get_scheme(path: str) -> str | None:
    """Returns the scheme of a URL in lower case, None for a plain path.

    Example:
      >>> get_scheme('S3://bucket/a'), get_scheme('/data/a://b')
      ('s3', None)
    """
    scheme, separator, _ = path.partition("://")
    if not separator or not scheme[:1].isalpha() or not scheme.isascii():
        return None
    return scheme.lower() if scheme.translate(_SCHEME_PUNCTUATION).isalnum() else None


def local_path(url: Url, argument: str) -> str:
    """Returns the local path of `url`, a plain path or `file:///path`. `argument` is its name in error messages.

    The path after `file://` is not percent-decoded, as in TensorFlow.

    Example:
      >>> local_path('file:///data/a b', 'url')
      '/data/a b'
    """
    # Fast path: nearly every call passes a plain path.
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
    """Returns whether a resolved path is the resolved `directory` or lies in it.

    Example:
      >>> is_inside('/a/foo/x', '/a/foo'), is_inside('/a/foo-bar/x', '/a/foo')
      (True, False)
    """
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


class RemotePath(NamedTuple):
    """A URL that is not local: its backend, the path there, and the URL without doubled slashes."""

    backend: Backend
    path: str
    url: str

    def is_inside(self, other: RemotePath) -> bool:
        """Returns whether it is `other` or lies in it. `s3://` and `obs://` may be the same store."""
        (store, inner), (other_store, outer) = self.backend.locate(self.path), other.backend.locate(other.path)
        return store == other_store and f"{inner.rstrip('/')}/".startswith(f"{outer.rstrip('/')}/")

    def child(self, relative: str) -> RemotePath:
        """Returns the path of an entry of this directory."""
        return RemotePath(self.backend, join(self.path, relative), join(self.url, relative))


#: A resolved URL: a local path, or a path of a backend.
Location: TypeAlias = "str | RemotePath"


def join(directory: str, relative: str) -> str:
    """Joins a path or URL and a path relative to it.

    Example:
      >>> join('s3://bucket', 'a'), join('/', 'a')
      ('s3://bucket/a', '/a')
    """
    return f"{directory}{relative}" if directory.endswith("/") else f"{directory}/{relative}"


def resolve(url: Url, argument: str) -> Location:
    """Resolves a URL to a local path or to a path of a backend. `argument` is its name in error messages.

    Example:
      >>> resolve('file:///data/a', 'url'), resolve('s3://bucket/a', 'url').path
      ('/data/a', 'bucket/a')
    """
    return find_remote(url, argument) or local_path(url, argument)


def url_of(location: Location) -> str:
    """Returns the URL or local path of a location.

    Example:
      >>> url_of(resolve('s3://bucket//a', 'url'))
      's3://bucket/a'
    """
    return location if isinstance(location, str) else location.url


def find_remote(url: Url, argument: str) -> RemotePath | None:
    """Returns the backend and path of a URL; None for a local path, and for a value that is not a path.

    Example:
      >>> find_remote('/data/a', 'url') is None
      True
      >>> find_remote('s3://bucket//a///b/', 'url').url
      's3://bucket/a/b/'
      >>> find_remote('s3://', 'url')
      Traceback (most recent call last):
      ...
      ValueError: url='s3://': expected s3://bucket or s3://bucket/key.
    """
    # Fast path: nearly every call passes a plain path.
    if type(url) is str:
        if "://" not in url:
            return None
        text = url
    elif isinstance(url, str | bytes | os.PathLike):
        text = os.fsdecode(url)
    else:
        return None
    scheme = get_scheme(text)
    if scheme is None or scheme == "file":
        return None
    path = text[len(scheme) + 3 :]
    if "\0" in text:
        raise ValueError(f"{argument}={text!r}: a path cannot contain a null character.")
    if scheme in _STORES:
        if not _BUCKET.match(path.partition("/")[0]):
            raise ValueError(f"{argument}={text!r}: expected {scheme}://bucket or {scheme}://bucket/key.")
        if "//" in path:
            # As in a local path: scripts often join a directory that ends in a slash and a name that starts with one.
            path = _SLASHES.sub("/", path)
            text = f"{scheme}://{path}"
        # Imported late: it needs urllib3, which local paths do not.
        from moxing.framework.file.remote.object_store import ObjectStore

        return RemotePath(ObjectStore(scheme), path, text)
    from moxing.framework.file.remote.fsspec_backend import find_backend

    try:
        return RemotePath(find_backend(scheme), path, text)
    except UnsupportedSchemeError as error:
        raise UnsupportedSchemeError(f"{argument}={text!r}: {error}") from None

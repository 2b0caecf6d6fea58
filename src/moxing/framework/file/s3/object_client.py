"""The interface of the S3 client: what the rest of `mox.file` may ask of an object store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

Body = bytes | bytearray | memoryview


@dataclass(frozen=True)
class ObjectInfo:
    """What a store reports about an object."""

    size: int
    mtime_nsec: int
    etag: str
    encrypted: bool = False

    @property
    def md5(self) -> str | None:
        """The MD5 of the content, or None: the ETag of a multipart or KMS-encrypted object is not an MD5."""
        plain = self.etag.strip('"').lower()
        return plain if len(plain) == 32 and not self.encrypted and set(plain) <= set("0123456789abcdef") else None


class ListedObject(NamedTuple):
    """An object in a listing."""

    key: str
    size: int
    mtime_nsec: int
    etag: str


@dataclass(frozen=True)
class ListPage:
    """One page of a listing, and the query parameters that request the next page."""

    objects: list[ListedObject]
    prefixes: list[str]
    next_query: dict[str, str]


class Upload(Protocol):
    """An upload in parts. The object appears with `complete`; `abort` leaves nothing behind."""

    def add_part(self, read: Callable[[], Body]) -> None:
        """Starts the next part. A worker thread calls `read` for its content."""

    def add_all(self, parts: Iterable[Callable[[], Body]]) -> None:
        """Uploads all parts and completes the object; aborts on failure."""

    def complete(self) -> None:
        """Waits for all parts and creates the object."""

    def abort(self) -> None:
        """Cancels the upload and removes its parts from the store."""


class ObjectClient(Protocol):
    """An object store, addressed by bucket and key.

    Every method retries transient failures as `set_auth(retry=...)` says. A method that looks for an object returns
    None if it does not exist. Other failures raise MoxFileRespException, MoxFileReadException (reads) or
    MoxFileNotExistsException (no such bucket).
    """

    def identity(self) -> tuple[object, object]:
        """The endpoint, and everything else that decides what the client can reach. Both are comparable."""

    def url(self, bucket: str, key: str) -> str:
        """Returns the URL of an object, for error messages."""

    def head(self, bucket: str, key: str) -> ObjectInfo | None:
        """Returns size, modification time and ETag of an object."""

    def has_bucket(self, bucket: str) -> bool:
        """Returns whether the bucket exists."""

    def get(
        self, bucket: str, key: str, start: int = 0, end: int | None = None, etag: str | None = None
    ) -> tuple[bytearray, ObjectInfo] | None:
        """Returns the bytes from `start` up to `end`. With `etag`, another version of the object is an error."""

    def put(self, bucket: str, key: str, body: Body) -> None:
        """Stores an object in one request."""

    def list_pages(self, bucket: str, prefix: str, delimiter: str = "", limit: int | None = None) -> Iterator[ListPage]:
        """Lists the objects whose keys start with `prefix`, page by page."""

    def delete(self, bucket: str, key: str) -> None:
        """Deletes an object. A missing object is not an error."""

    def delete_many(self, bucket: str, keys: list[str]) -> None:
        """Deletes objects in batches."""

    def copy(self, source: tuple[str, str], bucket: str, key: str) -> bool:
        """Copies an object inside the store; returns False if the source does not exist."""

    def start_upload(self, bucket: str, key: str, concurrency: int = 4) -> Upload:
        """Starts an upload in parts, up to `concurrency` at a time."""

    def download(self, bucket: str, key: str, target: str, length: int | None = None, concurrency: int = 4) -> bool:
        """Downloads an object to a local path; returns False if it does not exist. `length` is a hint."""

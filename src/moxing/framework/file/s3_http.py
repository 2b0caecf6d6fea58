"""Requests to a store: connections that are kept, signatures, repetitions."""

from __future__ import annotations

import hashlib
import os
import random
import threading
import time
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

import urllib3

from moxing.framework.file.access import Access
from moxing.framework.file.endpoints import guess_region, uses_path_style
from moxing.framework.file.responses import BAD_CERTIFICATE, StoreResponse, failure, parse_error
from moxing.framework.file.s3_signing import EMPTY_HASH, UNSIGNED, Signer, quote_key, quote_query
from moxing.framework.file.s3_xml import find_text

Body = bytes | bytearray | memoryview

CRC_HEADER = "x-amz-checksum-crc32"
_LONGEST_WAIT = 20.0
_LONGEST_CONNECT = 10.0
#: Slower than this for longer than the time limit, and a connection counts as hanging.
_SLOWEST_RATE = 1024
_CHUNK = 1 << 18
#: A body is sent in pieces of this size, each within the time limit: at 60 seconds that is the slowest rate.
_PIECE = 1 << 16
#: Progress after which earlier failures of a transfer are forgiven.
_FORGIVEN_AFTER = 1 << 20


class Sink(Protocol):
    """What takes the content of an answer: a bytearray, or a place in a file."""

    def __len__(self) -> int: ...

    def __iadd__(self, chunk: Any, /) -> Any: ...

    def clear(self) -> None: ...


@dataclass(frozen=True)
class Request:
    """One request, as it can be sent again."""

    method: str
    bucket: str
    key: str = ""
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: Body = b""
    about: str = ""  # the key in error messages, where it is not `key`


@dataclass
class Answer:
    """The answer to a request: status, headers with names in lower case, content.

    `attempt` says how often it was sent: if more than once, the store may have done before what it was asked to.
    """

    status: int
    headers: dict[str, str]
    body: bytes | bytearray
    attempt: int = 1


class Requester:
    """Sends requests to one store. Threads share it, and a child of a fork may go on with it."""

    def __init__(self, access: Access, scheme: str) -> None:
        self.access = access
        self._scheme = scheme
        self._lock = threading.Lock()
        self._signers = {access.region: Signer(access.credentials, access.region)}
        self._regions: dict[str, str] = {}
        self._pools, self._owner = self._make_pools(), os.getpid()

    def _make_pools(self) -> urllib3.PoolManager:
        access = self.access
        options: dict[str, Any] = {}
        if access.endpoint.secure:
            options["cert_reqs"] = "CERT_REQUIRED" if access.verify else "CERT_NONE"
            if not access.verify:
                # The user has said that it is meant.
                urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        # More connections than threads of a copy: what does not fit is closed after its request.
        pools = urllib3.PoolManager(
            num_pools=32,
            maxsize=64 if access.keep_alive else 1,
            timeout=urllib3.Timeout(connect=min(_LONGEST_CONNECT, access.timeout), read=access.timeout),
            retries=False,
            **options,
        )
        pools.pool_classes_by_scheme = _patient_pools(access.timeout)
        return pools

    def url(self, bucket: str, key: str) -> str:
        """A name for error messages."""
        return f"{self._scheme}://{bucket}/{key}"

    def send(
        self,
        method: str,
        bucket: str,
        key: str = "",
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        body: Body = b"",
        accept: tuple[int, ...] = (),
        check: Callable[[Answer], bool] | None = None,
        about: str = "",
    ) -> Answer:
        """Sends until there is an answer that is no passing failure, or too many failures.

        Args:
          method: As in HTTP.
          bucket: The bucket.
          key: The key, empty for the bucket itself.
          query: Parameters.
          headers: Further headers, names in lower case.
          body: The content.
          accept: Statuses beside 2xx that the caller understands.
          check: Whether an answer with 2xx is whole; one that was cut off or damaged is asked for again.
          about: The key that error messages name, where it is not `key`.

        Raises:
          MoxFileRespException: The store refused, or failed too often.
          MoxFileReadException: The same for content that was to be read.
        """
        request = Request(method, bucket, key, quote_query(query or {}), tuple((headers or {}).items()), body, about)
        attempt = 0
        while True:
            attempt += 1
            region = self.region(bucket)
            try:
                raw = self.open(request, region)
                answer = Answer(raw.status, lower(raw.headers), self.read_body(raw), attempt)
            except TRANSPORT_ERRORS as error:
                response, wait = transport_failure(error), None
            else:
                if answer.status in accept or (answer.status < 300 and (check is None or check(answer))):
                    return answer
                if answer.status < 300 and not find_text(bytes(answer.body), "Code"):
                    response = StoreResponse(0, "InvalidAnswer", "the answer was cut off or damaged")
                else:
                    # A store may answer 200 at once and tell of a failure in the body.
                    response = parse_error(answer.status, answer.headers, bytes(answer.body))
                    if self.change_region(bucket, region, answer):
                        continue
                wait = answer.headers.get("retry-after")
            self.pause_or_fail(response, request, attempt, wait)

    def open(self, request: Request, region: str) -> urllib3.BaseHTTPResponse:
        """Sends a request once, signed for a region, and returns the answer with its content still to be read."""
        if self._owner != os.getpid():
            # Two processes on one socket would read each other's answers; and the lock may be held by a thread that
            # is not here.
            self._lock, self._pools, self._owner = threading.Lock(), self._make_pools(), os.getpid()
        access = self.access
        endpoint = access.endpoint
        host, path = self._host(region), "/" + quote_key(request.key)
        if request.bucket and uses_path_style(host, request.bucket, endpoint.secure, access.path_style):
            path = f"/{request.bucket}{path}" if request.key else f"/{request.bucket}"
        elif request.bucket:
            host = f"{request.bucket}.{host}"
        headers = {"host": endpoint.host_header(host), **dict(request.headers)}
        if not access.keep_alive:
            headers["connection"] = "close"
        self._signers[region].sign(request.method, path, request.query, headers, self._checksum(request, headers))
        has_body = len(request.body) > 0 or request.method in ("PUT", "POST")
        if has_body:
            headers["content-length"] = str(len(request.body))
        pool = self._pools.connection_from_host(host, endpoint.port, endpoint.scheme)
        return pool.urlopen(
            request.method,
            f"{path}?{request.query}" if request.query else path,
            body=_in_pieces(request.body) if has_body else None,  # type: ignore[arg-type]
            headers=headers,
            retries=False,
            redirect=False,
            assert_same_host=False,
            preload_content=False,
            decode_content=False,
        )

    def _checksum(self, request: Request, headers: dict[str, str]) -> str:
        """What the signature says about the content. The store compares it, so nothing damaged is ever stored."""
        if not len(request.body):
            return EMPTY_HASH
        has_checksum = "content-md5" in headers or CRC_HEADER in headers
        if not self.access.endpoint.secure and self.access.credentials.ak is not None:
            if not has_checksum and request.method == "PUT":
                # Stores of one's own, which speak plain http, often do not compare the hash. (Of other requests the
                # header says something else.)
                headers[CRC_HEADER] = content_crc32(request.body)
            return hashlib.sha256(request.body).hexdigest()
        # Inside TLS nobody can change the content, so the cheaper check for accidents is enough.
        if not has_checksum:
            headers["content-md5"] = content_md5(request.body)
        return UNSIGNED

    def read_body(self, raw: urllib3.BaseHTTPResponse, into: Sink | None = None) -> Any:
        """Reads the content of an answer. What was read before a failure is in `into`.

        An answer without content is read, too: only then the connection is free for the next request.
        """
        content: Any = bytearray() if into is None else into
        started, before = time.monotonic(), len(content)
        try:
            while chunk := raw.read1(_CHUNK):
                content += chunk
                elapsed = time.monotonic() - started
                if elapsed > self.access.timeout and len(content) - before < elapsed * _SLOWEST_RATE:
                    raise TimeoutError(f"less than {_SLOWEST_RATE} bytes a second")
        except BaseException:
            # What is left in it would be taken for the next answer.
            raw.close()
            raise
        raw.release_conn()
        return content

    def pause_or_fail(self, response: StoreResponse, request: Request, attempt: int, wait: str | None = None) -> None:
        """Waits before the next attempt; raises if there is to be none."""
        access = self.access
        if not response.may_pass or attempt > access.retry:
            response = self._with_reason(response, request)
            url = self.url(request.bucket, request.about or request.key)
            where = access.endpoint.host_header(access.endpoint.host)
            raise failure(response, request.method, url, access.credentials.source, attempt, where)
        seconds = min(access.retry_wait * 2 ** min(attempt - 1, 16), _LONGEST_WAIT)
        # Half of it is random: clients that were refused together do not come back together.
        seconds *= 0.5 + random.random() / 2
        if wait is not None and wait.isdigit():
            seconds = max(seconds, min(float(wait), _LONGEST_WAIT))
        time.sleep(seconds)

    def _with_reason(self, response: StoreResponse, request: Request) -> StoreResponse:
        """What the store says to a refused HEAD, to which it must not say anything: the same as GET is refused, too."""
        if request.method != "HEAD" or response.status not in (400, 401, 403):
            return response
        query = "" if request.key else quote_query({"list-type": "2", "max-keys": "1"})
        asked = replace(request, method="GET", query=query, headers=(("range", "bytes=0-0"),) if request.key else ())
        with suppress(*TRANSPORT_ERRORS):
            raw = self.open(asked, self.region(request.bucket))
            found = parse_error(raw.status, lower(raw.headers), bytes(self.read_body(raw)))
            if found.status == response.status:
                return found
        return response

    def region(self, bucket: str) -> str:
        """The region that requests about a bucket are signed for."""
        return self._regions.get(bucket, self.access.region)

    def change_region(self, bucket: str, signed: str, answer: Answer) -> bool:
        """Whether the store named another region than the one that the request was signed for; the next one has it."""
        region = answer.headers.get("x-amz-bucket-region")
        if answer.status not in (301, 307, 400) or not region or region in (signed, self.access.region):
            return False
        with self._lock:
            self._signers.setdefault(region, Signer(self.access.credentials, region))
            self._regions[bucket] = region
        return True

    def _host(self, region: str) -> str:
        host = self.access.endpoint.host
        # The endpoints of a cloud have the region in their names.
        return host.replace(known, region) if region != self.access.region and (known := guess_region(host)) else host


def _in_pieces(body: Body) -> Iterable[Body]:
    view = memoryview(body)
    return (view[start : start + _PIECE] for start in range(0, len(view), _PIECE))


def _patient_pools(seconds: float) -> dict[str, Any]:
    """Connections that give each piece of a body so much time; those of urllib3 give it the time of a connect."""

    class Connection(urllib3.connection.HTTPConnection):
        def endheaders(self, *args: Any, **options: Any) -> None:
            super().endheaders(*args, **options)
            self.sock.settimeout(seconds)

    class SecureConnection(Connection, urllib3.connection.HTTPSConnection):
        pass

    class Pool(urllib3.HTTPConnectionPool):
        ConnectionCls = Connection

    class SecurePool(urllib3.HTTPSConnectionPool):
        ConnectionCls = SecureConnection

    return {"http": Pool, "https": SecurePool}


#: What a broken connection raises, in the words of urllib3 and of the socket.
TRANSPORT_ERRORS = (urllib3.exceptions.HTTPError, OSError)


#: What OpenSSL says of an answer that is no TLS; it depends on the version.
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")


def transport_failure(error: BaseException) -> StoreResponse:
    """A broken connection as an answer that never came.

    Example:
      >>> transport_failure(TimeoutError('nothing came'))
      StoreResponse(status=0, code='Timeout', message='no answer within the time limit', request_id='')
    """
    # Only the kind of error: its text has the parameters of the request in it.
    known = urllib3.exceptions
    if isinstance(error, known.NameResolutionError):
        code, words = "NoConnection", "the name of the host is not known"
    elif isinstance(error, known.NewConnectionError):
        code, words = "NoConnection", "nobody answers there"
    elif isinstance(error, known.ConnectTimeoutError):
        code, words = "Timeout", "no connection within the time limit"
    elif isinstance(error, TimeoutError | known.TimeoutError):
        code, words = "Timeout", "no answer within the time limit"
    elif isinstance(error, known.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        code, words = BAD_CERTIFICATE, "the certificate of the store is not accepted, see set_auth(ssl_verify=...)"
    elif isinstance(error, known.SSLError) and any(reason in str(error) for reason in _NO_TLS):
        code = "ConnectionError"
        words = "https was tried and is not spoken there: http:// before the address, or S3_USE_HTTPS=0, is plain http"
    elif isinstance(error, ConnectionError | known.ProtocolError):
        code, words = "ConnectionError", "the connection broke off"
    else:
        code, words = "ConnectionError", type(error).__name__
    return StoreResponse(0, code, words)


def content_md5(body: Body) -> str:
    """The value of the header Content-MD5.

    Example:
      >>> content_md5(b'')
      '1B2M2Y8AsgTpgAmY7PhCfg=='
    """
    return b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


def content_crc32(body: Body) -> str:
    """The value of the header x-amz-checksum-crc32, which takes a fifth of the time of an MD5.

    Example:
      >>> content_crc32(b'hello')
      'NhCmhg=='
    """
    return b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()


def lower(headers: Any) -> dict[str, str]:
    """Headers with their names in lower case."""
    return {name.lower(): value for name, value in headers.items()}

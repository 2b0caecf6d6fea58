"""HTTP requests to a store: connection pools, signatures, retries."""

from __future__ import annotations

import hashlib
import logging
import os
import random
import threading
import time
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import urllib3

from moxing.framework.file.errors import BAD_CERTIFICATE, StoreResponse
from moxing.framework.file.s3.access import Access
from moxing.framework.file.s3.credentials import Credentials, CredentialsError
from moxing.framework.file.s3.endpoints import guess_region, uses_path_style
from moxing.framework.file.s3.object_client import Body
from moxing.framework.file.s3.responses import NO_CREDENTIALS, make_exception, parse_error
from moxing.framework.file.s3.signing import EMPTY_HASH, UNSIGNED, Signer, quote_key, quote_query
from moxing.framework.file.s3.xml import find_text

CRC_HEADER = "x-amz-checksum-crc32"
_MAX_WAIT = 20.0
_MAX_CONNECT_TIMEOUT = 10.0
#: A connection that is slower than this for longer than the timeout counts as hanging.
_MIN_BYTES_PER_SECOND = 1024
_READ_SIZE = 1 << 18
#: A body is sent in pieces of this size, each within the timeout.
_SEND_SIZE = 1 << 16


_log = logging.getLogger("tensorflow")


class SlowTransferError(TimeoutError):
    """A body that arrives too slowly to wait for its end."""


class Sink(Protocol):
    """Takes the content of a response: a bytearray, or a range of a file."""

    def __len__(self) -> int: ...

    def __iadd__(self, chunk: Any, /) -> Any: ...

    def clear(self) -> None: ...


@dataclass(frozen=True)
class Request:
    """A request that can be sent more than once. Header names are in lower case."""

    method: str
    bucket: str
    key: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body = b""
    #: The key that error messages show, if it is not `key`.
    shown_key: str = ""


@dataclass
class Response:
    """A response that was read completely. Header names are in lower case.

    `attempt` counts how often the request was sent. If more than once, an earlier attempt may have succeeded.
    """

    status: int
    headers: dict[str, str]
    body: bytes | bytearray
    attempt: int = 1


class HttpClient:
    """Sends requests to one store. It is safe to share between threads, and to use in the child of a fork."""

    def __init__(self, access: Access, scheme: str) -> None:
        self.access = access
        self._scheme = scheme
        self._lock = threading.Lock()
        self._signers = {access.region: Signer(access.region)}
        self._regions: dict[str, str] = {}
        self._pools, self._owner = self._make_pools(), os.getpid()

    def _make_pools(self) -> urllib3.PoolManager:
        access = self.access
        options: dict[str, Any] = {}
        if access.endpoint.secure:
            options["cert_reqs"] = "CERT_REQUIRED" if access.verify else "CERT_NONE"
            if not access.verify:
                # The user asked for it.
                urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        # More connections than a copy has threads: a connection that does not fit is closed after its request.
        pools = urllib3.PoolManager(
            num_pools=32,
            maxsize=64 if access.keep_alive else 1,
            timeout=urllib3.Timeout(connect=min(_MAX_CONNECT_TIMEOUT, access.timeout), read=access.timeout),
            retries=False,
            **options,
        )
        pools.pool_classes_by_scheme = _pool_classes(access.timeout)
        return pools

    def url(self, bucket: str, key: str) -> str:
        """Returns the URL of an object, for error messages."""
        return f"{self._scheme}://{bucket}/{key}"

    def send(
        self,
        request: Request,
        accept: tuple[int, ...] = (),
        is_complete: Callable[[Response], bool] | None = None,
    ) -> Response:
        """Sends a request and retries transient failures.

        Args:
          request: The request.
          accept: Statuses besides 2xx that are returned instead of raised.
          is_complete: Checks a 2xx response. One that was cut off or damaged is requested again.

        Raises:
          MoxFileRespException: The store refused the request, or all retries failed.
          MoxFileReadException: All retries of a GET failed.
        """
        attempt = 0
        while True:
            attempt += 1
            region = self.region(request.bucket)
            try:
                raw = self.open(request, region)
                response = Response(raw.status, lower(raw.headers), self.read_body(raw), attempt)
            except TRANSPORT_ERRORS as error:
                failure, retry_after = describe_transport_error(error), None
            else:
                if response.status in accept or (response.status < 300 and (not is_complete or is_complete(response))):
                    return response
                if response.status < 300 and not find_text(bytes(response.body), "Code"):
                    failure = StoreResponse(0, "InvalidAnswer", "the response was truncated or damaged")
                else:
                    # A store may answer 200 at once and report a failure in the body.
                    failure = parse_error(response.status, response.headers, bytes(response.body))
                    if self.change_region(request.bucket, region, response):
                        continue
                retry_after = response.headers.get("retry-after")
            self.wait_or_raise(failure, request, attempt, retry_after)

    def open(self, request: Request, region: str) -> urllib3.BaseHTTPResponse:
        """Sends a request once, signed for a region. The body of the response is still to be read."""
        if self._owner != os.getpid():
            # Two processes on one socket would read each other's responses, and a thread that is not here may hold
            # the lock.
            self._lock, self._pools, self._owner = threading.Lock(), self._make_pools(), os.getpid()
        access = self.access
        endpoint = access.endpoint
        host, path = self._host(region), "/" + quote_key(request.key)
        if request.bucket and uses_path_style(host, request.bucket, endpoint.secure, access.path_style):
            path = f"/{request.bucket}{path}" if request.key else f"/{request.bucket}"
        elif request.bucket:
            host = f"{request.bucket}.{host}"
        headers = {"host": endpoint.host_header(host), **request.headers}
        if not access.keep_alive:
            headers["connection"] = "close"
        query = quote_query(request.query)
        credentials = access.credentials.current()
        checksum = self._add_checksum(request, headers, credentials)
        self._signers[region].sign(request.method, path, query, headers, checksum, credentials)
        has_body = len(request.body) > 0 or request.method in ("PUT", "POST")
        if has_body:
            headers["content-length"] = str(len(request.body))
        pool = self._pools.connection_from_host(host, endpoint.port, endpoint.scheme)
        return pool.urlopen(
            request.method,
            f"{path}?{query}" if query else path,
            body=_split_body(request.body) if has_body else None,  # type: ignore[arg-type]
            headers=headers,
            retries=False,
            redirect=False,
            assert_same_host=False,
            preload_content=False,
            decode_content=False,
        )

    def _add_checksum(self, request: Request, headers: dict[str, str], credentials: Credentials) -> str:
        """Returns the content hash to sign, and adds a checksum header, so that the store rejects damaged content."""
        if not len(request.body):
            return EMPTY_HASH
        has_checksum = "content-md5" in headers or CRC_HEADER in headers
        if not self.access.endpoint.secure and credentials.ak is not None:
            if not has_checksum and request.method == "PUT":
                # Self-hosted stores on plain HTTP often do not check the signed hash. (In other requests this header
                # has another meaning.)
                headers[CRC_HEADER] = content_crc32(request.body)
            return hashlib.sha256(request.body).hexdigest()
        # TLS protects the content, so the cheaper check for accidents is enough.
        if not has_checksum:
            headers["content-md5"] = content_md5(request.body)
        return UNSIGNED

    def read_body(self, raw: urllib3.BaseHTTPResponse, into: Sink | None = None) -> Any:
        """Reads the body of a response. After a failure, `into` holds what arrived before it.

        An empty body is read, too: only then the connection can be reused.
        """
        content: Any = bytearray() if into is None else into
        started, before = time.monotonic(), len(content)
        try:
            while chunk := raw.read1(_READ_SIZE):
                content += chunk
                elapsed = time.monotonic() - started
                if elapsed > self.access.timeout and len(content) - before < elapsed * _MIN_BYTES_PER_SECOND:
                    raise SlowTransferError
        except BaseException:
            # The rest would be taken for the next response.
            raw.close()
            raise
        raw.release_conn()
        return content

    def wait_or_raise(
        self, failure: StoreResponse, request: Request, attempt: int, retry_after: str | None = None
    ) -> None:
        """Waits before the next attempt, or raises if there is none."""
        access, url = self.access, self.url(request.bucket, request.shown_key or request.key)
        if not failure.is_transient or attempt > access.retry:
            failure = self._explain_head(failure, request)
            host = access.endpoint.host_header(access.endpoint.host)
            raise make_exception(failure, request.method, url, self.credentials_source(), attempt, host)
        seconds = min(access.retry_wait * 2 ** min(attempt - 1, 16), _MAX_WAIT)
        # Jitter: clients that were refused together must not come back together.
        seconds *= 0.5 + random.random() / 2
        if retry_after is not None and retry_after.isdigit():
            seconds = max(seconds, min(float(retry_after), _MAX_WAIT))
        reason = failure.message or failure.code or f"status {failure.status}"
        _log.info("%s %s: %s; retry %d of %d in %.1f s.", request.method, url, reason, attempt, access.retry, seconds)
        time.sleep(seconds)

    def credentials_source(self) -> str:
        """Returns where the credentials came from, for error messages."""
        try:
            return self.access.credentials.current().source
        except CredentialsError:
            return NO_CREDENTIALS

    def _explain_head(self, failure: StoreResponse, request: Request) -> StoreResponse:
        """Returns the reason of a refused HEAD, whose response has no body: a GET is refused for the same reason."""
        if request.method != "HEAD" or failure.status not in (400, 401, 403):
            return failure
        query = {} if request.key else {"list-type": "2", "max-keys": "1"}
        get = replace(request, method="GET", query=query, headers={"range": "bytes=0-0"} if request.key else {})
        with suppress(*TRANSPORT_ERRORS):
            raw = self.open(get, self.region(request.bucket))
            explained = parse_error(raw.status, lower(raw.headers), bytes(self.read_body(raw)))
            if explained.status == failure.status:
                return explained
        return failure

    def region(self, bucket: str) -> str:
        """Returns the region to sign requests for a bucket with."""
        return self._regions.get(bucket, self.access.region)

    def change_region(self, bucket: str, signed: str, response: Response) -> bool:
        """Remembers the region of a bucket if the response names another one than the request was signed for."""
        region = response.headers.get("x-amz-bucket-region")
        if response.status not in (301, 307, 400) or not region or region in (signed, self.access.region):
            return False
        with self._lock:
            self._signers.setdefault(region, Signer(region))
            self._regions[bucket] = region
        return True

    def _host(self, region: str) -> str:
        host = self.access.endpoint.host
        # The endpoints of a cloud contain the region.
        return host.replace(known, region) if region != self.access.region and (known := guess_region(host)) else host


def _split_body(body: Body) -> Iterable[Body]:
    view = memoryview(body)
    return (view[start : start + _SEND_SIZE] for start in range(0, len(view), _SEND_SIZE))


def _pool_classes(timeout: float) -> dict[str, Any]:
    """Returns pools whose connections apply the timeout to each piece of a body; urllib3 uses the connect timeout."""

    class Connection(urllib3.connection.HTTPConnection):
        def endheaders(self, *args: Any, **options: Any) -> None:
            super().endheaders(*args, **options)
            self.sock.settimeout(timeout)

    class SecureConnection(Connection, urllib3.connection.HTTPSConnection):
        pass

    class Pool(urllib3.HTTPConnectionPool):
        ConnectionCls = Connection

    class SecurePool(urllib3.HTTPSConnectionPool):
        ConnectionCls = SecureConnection

    return {"http": Pool, "https": SecurePool}


#: What a broken connection raises: urllib3's exceptions and the socket's.
TRANSPORT_ERRORS = (urllib3.exceptions.HTTPError, OSError)

#: How OpenSSL reports a response that is not TLS, depending on its version.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")


def describe_transport_error(error: BaseException) -> StoreResponse:
    """Describes a broken connection as a response with status 0.

    Example:
      >>> describe_transport_error(TimeoutError('nothing came')).message
      'no response within the timeout, see set_auth(client_timeout=...)'
    """
    # Only the type of the error: its text contains the parameters of the request.
    known = urllib3.exceptions
    if isinstance(error, CredentialsError):
        code, message = error.code, error.message
    elif isinstance(error, known.NameResolutionError):
        code, message = "NoConnection", "the host name cannot be resolved"
    elif isinstance(error, known.NewConnectionError):
        code, message = "NoConnection", "cannot connect"
    elif isinstance(error, known.ConnectTimeoutError):
        code, message = "Timeout", "no connection within the timeout, see set_auth(client_timeout=...)"
    elif isinstance(error, SlowTransferError):
        code, message = "Timeout", f"less than {_MIN_BYTES_PER_SECOND} bytes per second arrived"
    elif isinstance(error, TimeoutError | known.TimeoutError):
        code, message = "Timeout", "no response within the timeout, see set_auth(client_timeout=...)"
    elif isinstance(error, known.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        code, message = BAD_CERTIFICATE, "the certificate of the store is not accepted, see set_auth(ssl_verify=...)"
    elif isinstance(error, known.SSLError) and any(reason in str(error) for reason in _NOT_TLS):
        code = "ConnectionError"
        message = "the store does not speak https there. For plain http, put http:// before it or set S3_USE_HTTPS=0"
    elif isinstance(error, ConnectionError | known.ProtocolError):
        code, message = "ConnectionError", "the connection was lost"
    else:
        code, message = "ConnectionError", type(error).__name__
    return StoreResponse(0, code, message)


def content_md5(body: Body) -> str:
    """Returns the value of the header Content-MD5.

    Example:
      >>> content_md5(b'')
      '1B2M2Y8AsgTpgAmY7PhCfg=='
    """
    return b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


def content_crc32(body: Body) -> str:
    """Returns the value of the header x-amz-checksum-crc32, which takes a fifth of the time of an MD5.

    Example:
      >>> content_crc32(b'hello')
      'NhCmhg=='
    """
    return b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()


def lower(headers: Any) -> dict[str, str]:
    """Returns headers with names in lower case."""
    return {name.lower(): value for name, value in headers.items()}

"""A small HTTP proxy in front of a store that breaks answers on demand."""

from __future__ import annotations

import http.client
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ERROR = "<Error><Code>{}</Code><Message>asked for by a test</Message><RequestId>R-1</RequestId></Error>"
#: Faults that answer in place of the store: status and code.
REGION = "eu-elsewhere-1"
ANSWERS = {"500": (500, "InternalError"), "503": (503, "SlowDown"), "429": (429, "Throttling")}
#: Beside these there are "slow_upload": 20 kB a second on the way there, or as `limit_uploads` says; "refuse", which no
#: repetition changes; "region", "no_bucket" and "not_found", the page of a web server that knows nothing of S3; and
#: "other_range": as many bytes as were asked for, but from the beginning of the object.
#: Faults that happen on the way back: the store has done what it was asked to.
ON_THE_WAY_BACK = ("reset_body", "truncate", "slow", "damage")
FAULTS = (*ANSWERS, "reset", "reset_upload", "silent", "damage_upload", *ON_THE_WAY_BACK)

Match = Callable[[str, str], bool]


class FaultProxy:
    """Forwards requests to 127.0.0.1:`port` and breaks those that `fail` names. With a context it speaks TLS.

    Attributes:
      requests: Method and target of every request so far.
      headers: Its headers.
      sent: How many bytes of content were sent to clients.
      connections: How many connections clients made.
      rewrite: If set, gets target and body of every answer and returns the body to send.
    """

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        self.port = port
        self._context = context
        self.requests: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.sent = 0
        self.connections = 0
        self.rewrite: Callable[[str, bytes], bytes] | None = None
        self.upload_rate: int | None = None
        self._fault, self._times, self._match = "", 0.0, _everything
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def fail(self, fault: str, times: float = 1, match: Match | None = None) -> None:
        """Breaks the next `times` requests that match."""
        with self._lock:
            self._fault, self._times, self._match = fault, times, match or _everything

    def take_fault(self, method: str, target: str) -> str:
        with self._lock:
            self.requests.append((method, target))
            if self._times < 1 or not self._match(method, target):
                return ""
            self._times -= 1
            return self._fault

    @property
    def fault(self) -> str:
        """What `fail` has asked for last."""
        return self._fault

    @property
    def unused(self) -> float:
        """How many of the requests that were to fail did not come."""
        return self._times

    def limit_uploads(self, rate: int) -> None:
        """How many bytes a second "slow_upload" takes; on new connections only a little more lies in between."""
        self.upload_rate = rate
        self._server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 15)

    def wait(self, seconds: float) -> None:
        self._stop.wait(seconds)

    @property
    def is_stopped(self) -> bool:
        return self._stop.is_set()

    def __enter__(self) -> FaultProxy:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        if self._context is not None:
            self._server.socket = self._context.wrap_socket(self._server.socket, server_side=True)
        self.endpoint = f"http{'s' if self._context else ''}://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._server.shutdown()
        self._server.server_close()


def _everything(method: str, target: str) -> bool:
    return True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    proxy: FaultProxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are what this is about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.proxy.connections += 1
        self._upstream = http.client.HTTPConnection("127.0.0.1", self.server.proxy.port, timeout=60)

    def finish(self) -> None:
        self._upstream.close()
        super().finish()

    def log_message(self, *_: object) -> None:
        pass

    def _serve(self) -> None:
        proxy = self.server.proxy
        proxy.headers.append({name.lower(): value for name, value in self.headers.items()})
        fault = proxy.take_fault(self.command, self.path)
        length = int(self.headers.get("content-length") or 0)
        if fault == "reset_upload":
            self.rfile.read(length // 2)
            self._reset()
            return
        body = self._read_slowly(length) if fault == "slow_upload" else self.rfile.read(length)
        if len(body) < length:
            return  # the client has gone
        if fault == "reset":
            self._reset()
        elif fault == "silent":
            proxy.wait(30)
            self._reset()
        elif fault == "refuse":
            self._answer(403, {}, ERROR.format("AccessDenied").encode(), "")
        elif fault == "region" and REGION not in self.headers.get("authorization", ""):
            # Late enough for requests that are made together to meet the same answer.
            proxy.wait(0.1)
            content = ERROR.format("AuthorizationHeaderMalformed").encode()
            self._answer(400, {"x-amz-bucket-region": REGION}, content, "")
        elif fault == "not_found":
            self._answer(404, {}, b"<html>not found</html>", "")
        elif fault == "no_bucket":
            self._answer(404, {}, ERROR.format("NoSuchBucket").encode(), "")
        elif fault in ANSWERS:
            status, code = ANSWERS[fault]
            self._answer(status, {"x-amz-request-id": "R-1"}, ERROR.format(code).encode(), "")
        else:
            if fault == "damage_upload" and body:
                body = bytes([body[0] ^ 255]) + body[1:]
            self._forward(body, fault)

    def _read_slowly(self, length: int) -> bytes:
        """Takes a body in pieces, as over a slow line; the rest at once when another fault is asked for, or none."""
        body = bytearray()
        rate = self.server.proxy.upload_rate
        while len(body) < length and not self.server.proxy.is_stopped:
            piece = self.rfile.read1(min(rate // 10 if rate else 2048, length - len(body)))
            if not piece:
                break
            body += piece
            if self.server.proxy.fault == "slow_upload":
                self.server.proxy.wait(len(piece) / rate if rate else 0.1)
        return bytes(body)

    def _forward(self, body: bytes, fault: str) -> None:
        self._upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if fault == "other_range" and name.lower() == "range":
                first, last = map(int, value.removeprefix("bytes=").split("-"))
                value = f"bytes=0-{last - first}"
            self._upstream.putheader(name, value)
        self._upstream.endheaders(body or None)
        response = self._upstream.getresponse()
        content = response.read()
        headers = {k: v for k, v in response.getheaders() if k.lower() not in ("connection", "transfer-encoding")}
        if self.command == "HEAD":
            content_length = headers.get("Content-Length")
        else:
            if self.server.proxy.rewrite is not None:
                content = self.server.proxy.rewrite(self.path, content)
            content_length = None
        self._answer(response.status, headers, content, fault, content_length)

    def _answer(
        self, status: int, headers: dict[str, str], content: bytes, fault: str, length: str | None = None
    ) -> None:
        if fault == "damage" and content:
            content = bytes([content[0] ^ 255]) + content[1:]
        headers = {k: v for k, v in headers.items() if k.lower() != "content-length"}
        lines = [f"HTTP/1.1 {status} X", *(f"{k}: {v}" for k, v in headers.items())]
        lines.append(f"Content-Length: {len(content) if length is None else length}")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        self.server.proxy.sent += len(content)
        if self.command == "HEAD":
            content = b""
        if fault == "reset_body":
            # Where there is no body the answer is lost altogether.
            self.wfile.write((head + content)[: (len(head) + len(content) // 2) if content else 0])
            self.wfile.flush()
            self._reset()
        elif fault == "truncate":
            # Where there is no body, nothing comes behind the status.
            self.wfile.write((head + content)[: (len(head) + len(content) // 2) if content else head.index(b"\n") + 1])
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif fault == "slow":
            # Where there is no body, the whole answer keeps waiting.
            self.wfile.write(head if content else b"")
            for byte in content:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                self.server.proxy.wait(0.1)
            if not content:
                self.server.proxy.wait(30)
                self._reset()
        else:
            self.wfile.write(head + content)

    def _reset(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815

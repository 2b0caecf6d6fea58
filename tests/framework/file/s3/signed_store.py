"""A small S3 server that accepts temporary keys. botocore's own signer checks every signature."""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class SignedStore:
    """Objects in memory. `tokens` has the session token of each request that was signed correctly."""

    def __init__(self, access_key: str, secret_key: str) -> None:
        self._access_key, self._secret_key = access_key, secret_key
        self._objects: dict[str, bytes] = {}
        self.tokens: list[str | None] = []
        self.refused = 0

    def __enter__(self) -> SignedStore:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                status, headers, content = owner._answer(self, body)
                self.send_response(status)
                for name, value in {"content-length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_PUT = do_HEAD = _serve

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, dict[str, str], bytes]:
        if not self._is_signed(request):
            self.refused += 1
            return 403, {}, b"<Error><Code>SignatureDoesNotMatch</Code></Error>"
        self.tokens.append(request.headers.get("x-amz-security-token"))
        parts = urlsplit(request.path)
        key = unquote(parts.path)
        if request.command == "PUT":
            self._objects[key] = body
            return 200, {"etag": f'"{hashlib.md5(body).hexdigest()}"'}, b""
        if "list-type" in parts.query:
            prefix = f"{key}/{parse_qs(parts.query).get('prefix', [''])[0]}"
            names = [escape(name.removeprefix(f"{key}/")) for name in self._objects if name.startswith(prefix)]
            items = "".join(f"<Contents><Key>{name}</Key><Size>1</Size></Contents>" for name in sorted(names))
            return 200, {}, f"<ListBucketResult>{items}</ListBucketResult>".encode()
        if key not in self._objects:
            return 404, {}, b"<Error><Code>NoSuchKey</Code></Error>"
        content = self._objects[key]
        return 200, {"etag": f'"{hashlib.md5(content).hexdigest()}"'}, content

    def _is_signed(self, request: BaseHTTPRequestHandler) -> bool:
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        headers = {name.lower(): value for name, value in request.headers.items()}
        given = headers.get("authorization", "")
        fields = dict(part.strip().split("=", 1) for part in given.partition(" ")[2].split(",") if "=" in part)
        signed = {name: headers.get(name, "") for name in fields.get("SignedHeaders", "").split(";")}
        if "x-amz-security-token" in headers and "x-amz-security-token" not in signed:
            return False
        copy = AWSRequest(request.command, f"http://{headers['host']}{request.path}", headers=signed)
        copy.context["timestamp"] = headers.get("x-amz-date", "")
        signer = S3SigV4Auth(Credentials(self._access_key, self._secret_key), "s3", "us-east-1")
        text = signer.string_to_sign(copy, signer.canonical_request(copy))
        scope = f"{self._access_key}/{signer.credential_scope(copy)}"
        return fields.get("Credential") == scope and fields.get("Signature") == signer.signature(text, copy)

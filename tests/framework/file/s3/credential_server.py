"""A real HTTP server that stands for the credential endpoints of a cloud: instance metadata, containers, STS, SSO."""

from __future__ import annotations

import datetime
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_STS = """<{0}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{0}Result><Credentials>
<AccessKeyId>{AccessKeyId}</AccessKeyId><SecretAccessKey>{SecretAccessKey}</SecretAccessKey>
<SessionToken>{Token}</SessionToken><Expiration>{Expiration}</Expiration></Credentials>
<AssumedRoleUser><AssumedRoleId>A:s</AssumedRoleId><Arn>arn:aws:sts::1:assumed-role/r/s</Arn></AssumedRoleUser>
</{0}Result><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></{0}Response>"""
_REFUSAL = """<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>AccessDenied</Code><Message>Not authorized</Message></Error><RequestId>1</RequestId></ErrorResponse>"""


class CredentialServer:
    """Serves temporary keys. The token counts how often they were fetched: token-1, token-2, ..."""

    def __init__(self, access_key: str, secret_key: str) -> None:
        self._keys = {"AccessKeyId": access_key, "SecretAccessKey": secret_key}
        #: Minutes until the keys expire that are served next.
        self.minutes = 60.0
        self.refuse = False
        self.requests: list[str] = []
        self._count = 0

    def __enter__(self) -> CredentialServer:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner._answer(self, "")

            def do_PUT(self) -> None:
                owner._answer(self, "")

            def do_POST(self) -> None:
                owner._answer(self, self.rfile.read(int(self.headers.get("content-length", 0))).decode())

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _next_keys(self) -> dict[str, str]:
        self._count += 1
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=self.minutes)
        return {**self._keys, "Token": f"token-{self._count}", "Expiration": end.strftime("%Y-%m-%dT%H:%M:%SZ")}

    def _answer(self, handler: BaseHTTPRequestHandler, body: str) -> None:
        path = urlsplit(handler.path).path
        action = parse_qs(body).get("Action", [""])[0]
        self.requests.append(action or path)
        status, text = 200, ""
        if self.refuse:
            status, text = 403, _REFUSAL
        elif action:
            text = _STS.format(action, **self._next_keys())
        elif path == "/latest/api/token":
            text = "imds-session"
        elif path == "/latest/meta-data/iam/security-credentials/":
            text = "my-role"
        elif path == "/latest/meta-data/iam/security-credentials/my-role":
            text = json.dumps({"Code": "Success", "Type": "AWS-HMAC", "LastUpdated": "x", **self._next_keys()})
        elif path == "/container":
            text = json.dumps(self._next_keys())
        elif path == "/federation/credentials":
            keys = self._next_keys()
            names = {"accessKeyId": keys["AccessKeyId"], "secretAccessKey": keys["SecretAccessKey"]}
            text = json.dumps(
                {"roleCredentials": {**names, "sessionToken": keys["Token"], "expiration": 4102444800000}}
            )
        else:
            status = 404
        handler.send_response(status)
        handler.send_header("content-length", str(len(text.encode())))
        handler.end_headers()
        handler.wfile.write(text.encode())

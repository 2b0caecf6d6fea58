"""AWS Signature Version 4, which every S3 store accepts."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from urllib.parse import quote

from moxing.framework.file.s3.credentials import Credentials

UNSIGNED = "UNSIGNED-PAYLOAD"
EMPTY_HASH = hashlib.sha256(b"").hexdigest()


def quote_key(key: str) -> str:
    """Quotes a key for the path of a request.

    Example:
      >>> quote_key('a b/ü+~')
      'a%20b/%C3%BC%2B~'
    """
    return quote(key, safe="/~", errors="surrogateescape")


def quote_query(query: Mapping[str, str]) -> str:
    """Returns the query string in the order and form that the signature requires.

    Example:
      >>> quote_query({'prefix': 'a/b', 'list-type': '2', 'acl': ''})
      'acl=&list-type=2&prefix=a%2Fb'
    """
    pairs = sorted((quote(k, safe="~"), quote(v, safe="~", errors="surrogateescape")) for k, v in query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


class Signer:
    """Signs requests for one region.

    Example:
      >>> signer = Signer('us-east-1')
      >>> headers = {'host': 'store'}
      >>> signer.sign('GET', '/bucket/key', '', headers, EMPTY_HASH, Credentials('AK', 'SK', None, 'set_auth'))
      >>> headers['authorization'].split('/')[0], headers['authorization'].split('/')[2:4]
      ('AWS4-HMAC-SHA256 Credential=AK', ['us-east-1', 's3'])
    """

    def __init__(self, region: str, clock: Callable[[], float] = time.time) -> None:
        self._region, self._clock = region, clock
        # The signing key changes daily and with the secret. One tuple, so that threads see a consistent value.
        self._signing_key: tuple[str, str, bytes] = ("", "", b"")

    def sign(
        self, method: str, path: str, query: str, headers: dict[str, str], payload: str, credentials: Credentials
    ) -> None:
        """Adds date, content hash and signature to `headers`, whose names are in lower case.

        Without keys the request stays unsigned, which public buckets accept.
        """
        if credentials.ak is None or credentials.sk is None:
            return
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._clock()))
        headers["x-amz-date"] = moment
        headers["x-amz-content-sha256"] = payload
        if credentials.token:
            headers["x-amz-security-token"] = credentials.token
        signed = sorted(
            name for name in headers if name == "host" or name == "content-md5" or name.startswith("x-amz-")
        )
        names = ";".join(signed)
        lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in signed)
        request = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{payload}"
        scope = f"{moment[:8]}/{self._region}/s3/aws4_request"
        digest = hashlib.sha256(request.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{digest}"
        signature = hmac.digest(self._key(moment[:8], credentials.sk), text.encode(), "sha256").hex()
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={credentials.ak}/{scope}, SignedHeaders={names}, Signature={signature}"
        )

    def _key(self, day: str, secret: str) -> bytes:
        known_day, known_secret, key = self._signing_key
        if (known_day, known_secret) != (day, secret):
            key = f"AWS4{secret}".encode()
            for part in (day, self._region, "s3", "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._signing_key = (day, secret, key)
        return key

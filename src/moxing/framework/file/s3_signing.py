"""Signatures of requests, version 4 of AWS, which every S3 store checks."""

from __future__ import annotations

import hashlib
import hmac
import time
from urllib.parse import quote

from moxing.framework.file.access import Credentials

UNSIGNED = "UNSIGNED-PAYLOAD"
EMPTY_HASH = hashlib.sha256(b"").hexdigest()


def quote_key(key: str) -> str:
    """A key as it stands in the path of a request.

    Example:
      >>> quote_key('a b/ü+~')
      'a%20b/%C3%BC%2B~'
    """
    return quote(key, safe="/~", errors="surrogateescape")


def quote_query(query: dict[str, str]) -> str:
    """Parameters in the order and form that the signature needs.

    Example:
      >>> quote_query({'prefix': 'a/b', 'list-type': '2', 'acl': ''})
      'acl=&list-type=2&prefix=a%2Fb'
    """
    pairs = sorted((quote(k, safe="~"), quote(v, safe="~", errors="surrogateescape")) for k, v in query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


class Signer:
    """Signs requests with one pair of keys for one region.

    Example:
      >>> signer = Signer(Credentials('AK', 'SK', None, 'set_auth'), 'us-east-1')
      >>> headers = {'host': 'store'}
      >>> signer.sign('GET', '/bucket/key', '', headers, EMPTY_HASH, now=0)
      >>> headers['authorization'][:54]
      'AWS4-HMAC-SHA256 Credential=AK/19700101/us-east-1/s3/a'
    """

    def __init__(self, credentials: Credentials, region: str) -> None:
        self._credentials = credentials
        self._region = region
        # The key of a day takes four rounds to make, a request one. A tuple, so that threads see both or none.
        self._day_key: tuple[str, bytes] = ("", b"")

    def sign(
        self, method: str, path: str, query: str, headers: dict[str, str], payload: str, now: float | None = None
    ) -> None:
        """Adds the date, the hash of the content and the signature to `headers`, all of whose names are in lower case.

        Without keys the request stays as it is: a public bucket answers that, too.
        """
        keys = self._credentials
        if keys.ak is None or keys.sk is None:
            return
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        headers["x-amz-date"] = moment
        headers["x-amz-content-sha256"] = payload
        if keys.token:
            headers["x-amz-security-token"] = keys.token
        signed = sorted(
            name for name in headers if name == "host" or name == "content-md5" or name.startswith("x-amz-")
        )
        names = ";".join(signed)
        lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in signed)
        request = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{payload}"
        scope = f"{moment[:8]}/{self._region}/s3/aws4_request"
        digest = hashlib.sha256(request.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{digest}"
        signature = hmac.digest(self._key(moment[:8]), text.encode(), "sha256").hex()
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={keys.ak}/{scope}, SignedHeaders={names}, Signature={signature}"
        )

    def _key(self, day: str) -> bytes:
        known_day, key = self._day_key
        if known_day != day:
            key = f"AWS4{self._credentials.sk}".encode()
            for part in (day, self._region, "s3", "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._day_key = (day, key)
        return key

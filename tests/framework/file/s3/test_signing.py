"""Signatures."""

from xml.etree import ElementTree

import pytest

from moxing.framework.file.s3.credentials import Credentials
from moxing.framework.file.s3.signing import EMPTY_HASH, Signer, quote_key, quote_query
from moxing.framework.file.s3.xml import make_delete_body

# The keys and the moment of the examples in the documentation of Amazon S3, which has the signatures, too.
EXAMPLE = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", None, "set_auth")
MOMENT = 1369353600


@pytest.mark.parametrize(
    ("query", "signature"),
    [
        ({"lifecycle": ""}, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ({"prefix": "J", "max-keys": "2"}, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)
def test_signatures_are_those_of_the_documentation(query, signature):
    days = iter([MOMENT, MOMENT, MOMENT + 86400])
    signer = Signer("us-east-1", clock=lambda: next(days))
    for _ in range(2):
        headers = {"host": "examplebucket.s3.amazonaws.com"}
        signer.sign("GET", "/", quote_query(query), headers, EMPTY_HASH, EXAMPLE)
        assert headers["authorization"].endswith(f"Signature={signature}")
        assert "SignedHeaders=host;x-amz-content-sha256;x-amz-date" in headers["authorization"]
    signer.sign("GET", "/", "", headers, EMPTY_HASH, EXAMPLE)
    assert "/20130525/" in headers["authorization"]


def test_a_session_token_is_signed():
    headers = {"host": "h"}
    Signer("r").sign("GET", "/", "", headers, EMPTY_HASH, Credentials("A", "S", "TOKEN", "x"))
    assert headers["x-amz-security-token"] == "TOKEN"
    assert "x-amz-security-token" in headers["authorization"]
    unsigned = {"host": "h"}
    Signer("r").sign("GET", "/", "", unsigned, EMPTY_HASH, Credentials(None, None, None, "no credentials"))
    assert unsigned == {"host": "h"}


def test_keys_in_requests():
    assert quote_key("a/b c+ü~-._") == "a/b%20c%2B%C3%BC~-._"
    assert quote_key("\udcff") == "%FF"
    assert make_delete_body(["<&>"]).count(b"&lt;&amp;&gt;") == 1
    ElementTree.fromstring(make_delete_body(["a'\"", "🚀"]))

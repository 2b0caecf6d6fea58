"""The client below `mox.file`: signatures, regions, listings of older stores, errors."""

import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import fault_proxy
import pytest
from urllib3.util import connection

import moxing as mox
from moxing.framework.file import s3_http
from moxing.framework.file.access import Credentials
from moxing.framework.file.auth import get_client
from moxing.framework.file.responses import StoreResponse, failure, parse_error
from moxing.framework.file.s3_client import ObjectInfo
from moxing.framework.file.s3_multipart import part_size_for
from moxing.framework.file.s3_signing import EMPTY_HASH, Signer, quote_key, quote_query
from moxing.framework.file.s3_xml import make_delete_body, parse_http_date, parse_iso_date, parse_list

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
    signer = Signer(EXAMPLE, "us-east-1")
    for _ in range(2):
        headers = {"host": "examplebucket.s3.amazonaws.com"}
        signer.sign("GET", "/", quote_query(query), headers, EMPTY_HASH, now=MOMENT)
        assert headers["authorization"].endswith(f"Signature={signature}")
        assert "SignedHeaders=host;x-amz-content-sha256;x-amz-date" in headers["authorization"]
    signer.sign("GET", "/", "", headers, EMPTY_HASH, now=MOMENT + 86400)
    assert "/20130525/" in headers["authorization"]


def test_a_session_token_is_signed():
    headers = {"host": "h"}
    Signer(Credentials("A", "S", "TOKEN", "x"), "r").sign("GET", "/", "", headers, EMPTY_HASH)
    assert headers["x-amz-security-token"] == "TOKEN"
    assert "x-amz-security-token" in headers["authorization"]
    unsigned = {"host": "h"}
    Signer(Credentials(None, None, None, "no credentials"), "r").sign("GET", "/", "", unsigned, EMPTY_HASH)
    assert unsigned == {"host": "h"}


def test_keys_in_requests():
    assert quote_key("a/b c+ü~-._") == "a/b%20c%2B%C3%BC~-._"
    assert quote_key("\udcff") == "%FF"
    assert make_delete_body(["<&>"]).count(b"&lt;&amp;&gt;") == 1
    ElementTree.fromstring(make_delete_body(["a'\"", "🚀"]))


def test_another_region(proxy, s3_folder):
    mox.file.write(f"{s3_folder}/a", "x")
    proxy.headers.clear()
    proxy.fail("region", 1)
    assert mox.file.read(f"{s3_folder}/a") == "x"
    assert "/us-east-1/" in proxy.headers[0]["authorization"]
    assert f"/{fault_proxy.REGION}/" in proxy.headers[1]["authorization"]
    assert mox.file.exists(f"{s3_folder}/a")
    assert f"/{fault_proxy.REGION}/" in proxy.headers[2]["authorization"]


def test_many_first_requests_to_another_region(proxy, s3_folder):
    mox.file.write(f"{s3_folder}/a", "x")
    proxy.fail("region", float("inf"))
    for ask, expected in ((mox.file.read, "x"), (mox.file.get_size, 1)):
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(ask, [f"{s3_folder}/a"] * 8)) == [expected] * 8
        # Other settings: the next client knows nothing of the region.
        mox.file.set_auth(client_timeout=19)


def test_listings_of_older_stores():
    """OBS and others may answer with the first version, which has markers in place of tokens."""
    page = (
        b"<ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><IsTruncated>true</IsTruncated>%s"
        b"<Contents><Key>a b</Key><Size>1</Size><LastModified>2020-01-01T00:00:00.5Z</LastModified></Contents>"
        b"<CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes></ListBucketResult>"
    )
    assert parse_list(page % b"").next_query == {"marker": "c/"}
    found = parse_list(page % b"<NextMarker>b%2Fc</NextMarker><EncodingType>url</EncodingType>")
    assert found.next_query == {"marker": "b/c"}
    assert (found.objects[0].key, found.objects[0].mtime_nsec, found.prefixes) == ("a b", 1577836800500000000, ["c/"])
    assert parse_list(b"no xml") is None
    assert (parse_iso_date("soon"), parse_http_date("soon"), parse_http_date(None)) == (0, 0, 0)


def test_paging_without_tokens(proxy, s3_folder):
    names = [f"{n}" for n in range(7)]
    for name in names:
        mox.file.write(f"{s3_folder}/{name}", "")

    def as_first_version(target, body):
        return body.replace(b"NextContinuationToken", b"Unknown").replace(b"KeyCount", b"Other")

    proxy.rewrite = as_first_version
    mox.file.set_auth(list_max_keys=2)
    # This server takes the marker only from requests of the first version: what never goes on has to end.
    pages = get_client("s3").list_pages("tests", f"{s3_folder.removeprefix('s3://tests/')}/")
    assert next(pages).next_query["marker"].endswith("/1")
    with pytest.raises(mox.file.MoxFileRespException, match="does not go on"):
        list(pages)


@pytest.mark.parametrize("body", [b"<html/>", b"<br>", b"ok", fault_proxy.ERROR.format("SlowDown").encode()])
def test_removals_of_which_the_store_tells_nothing(proxy, s3_folder, body):
    for name in ("a", "b"):
        mox.file.write(f"{s3_folder}/{name}", "x")
    answers = []

    def rewrite(target, content):
        if "delete=" in target:
            answers.append(target)
            return body if len(answers) <= wrong else content
        return content

    proxy.rewrite, wrong = rewrite, 100
    with pytest.raises(mox.file.MoxFileRespException, match="after 5 attempts") as caught:
        mox.file.remove(s3_folder, recursive=True)
    assert caught.value.resp.code in ("InvalidAnswer", "SlowDown")
    mox.file.write(f"{s3_folder}/a", "x")
    answers, wrong = [], 1
    mox.file.remove(s3_folder, recursive=True)
    assert len(answers) == 2
    assert not mox.file.exists(s3_folder)


def test_errors_become_exceptions():
    body = b"<Error><Code>SlowDown</Code><Message>less</Message><RequestId>7</RequestId></Error>"
    assert parse_error(503, {}, body) == StoreResponse(503, "SlowDown", "less", "7")
    assert parse_error(500, {"x-obs-request-id": "8"}, b"<html").request_id == "8"
    assert parse_error(400, {}, b"<Error><Code>RequestTimeout</Code></Error>").may_pass
    assert not parse_error(400, {}, b"").may_pass
    assert not StoreResponse(0, "BadCertificate", "").may_pass
    kinds = {
        ("GET", 503): mox.file.MoxFileReadException,
        ("PUT", 503): mox.file.MoxFileRespException,
        ("GET", 403): mox.file.MoxFileRespException,
        ("PUT", 404): mox.file.MoxFileNotExistsException,
    }
    for (method, status), kind in kinds.items():
        assert type(failure(StoreResponse(status, "X", ""), method, "s3://b/k", "set_auth", 1)) is kind


def test_when_an_etag_is_an_md5():
    assert ObjectInfo(1, 0, '"5d41402abc4b2a76b9719d911017c592"').md5 == "5d41402abc4b2a76b9719d911017c592"
    assert ObjectInfo(1, 0, '"5d41402abc4b2a76b9719d911017c592"', encrypted=True).md5 is None
    assert ObjectInfo(1, 0, '"5d41402abc4b2a76b9719d911017c592-3"').md5 is None
    assert ObjectInfo(1, 0, "").md5 is None


def test_parts_stay_below_the_number_that_a_store_takes():
    for size in (1, 1 << 30, 5 << 40):
        assert -(-size // part_size_for(size)) <= 10_000


def test_waits_grow_and_are_bounded(proxy, s3_folder, monkeypatch):
    waits = []
    monkeypatch.setattr(s3_http.time, "sleep", waits.append)
    mox.file.set_auth(retry=9, retry_wait=1)
    proxy.fail("503", float("inf"))
    with pytest.raises(mox.file.MoxFileRespException, match="after 10 attempts"):
        mox.file.write(f"{s3_folder}/a", "x")
    assert len(waits) == 9
    for number, seconds in enumerate(waits):
        longest = min(2**number, 20)
        assert longest / 2 <= seconds <= longest
    mox.file.set_auth(retry=0)
    proxy.requests.clear()
    with pytest.raises(mox.file.MoxFileRespException):
        mox.file.write(f"{s3_folder}/a", "x")
    assert len(proxy.requests) == 1


def test_many_threads_share_a_client(s3_folder):
    mox.file.write(f"{s3_folder}/a", "x" * 5000)
    wrong = []

    def work():
        for _ in range(10):
            if mox.file.read(f"{s3_folder}/a") != "x" * 5000:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(20)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert time.monotonic() - started < 30


def test_a_body_that_is_slow_but_complete(proxy, s3_folder):
    """The time limit strikes with the last byte: asked for the rest, the store would say that there is none."""
    mox.file.write(f"{s3_folder}/a", "abcd")
    mox.file.set_auth(client_timeout=0.35)
    proxy.fail("slow", 1)
    assert mox.file.read(f"{s3_folder}/a") == "abcd"


@pytest.fixture
def narrow(proxy, monkeypatch):
    """A line on which little lies between the two ends, so that a body is sent as slowly as it is taken."""
    original = connection.create_connection

    def connect(*args, **options):
        made = original(*args, **options)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 15)
        return made

    monkeypatch.setattr(connection, "create_connection", connect)
    return proxy


@pytest.mark.parametrize("is_new", [True, False])
def test_a_body_that_takes_longer_than_the_time_limit(narrow, s3_folder, is_new):
    """The limit is for an answer or for a piece of the body, not for all of it."""
    body = os.urandom(2 << 20)
    mox.file.set_auth(retry=0, client_timeout=1)
    narrow.limit_uploads(1_000_000)
    if not is_new:
        mox.file.write(f"{s3_folder}/a", "x")
    narrow.fail("slow_upload", 1, lambda method, target: method == "PUT")
    mox.file.write(f"{s3_folder}/a", body, binary=True)
    assert narrow.unused == 0
    mox.file.set_auth(client_timeout=20)
    assert mox.file.read(f"{s3_folder}/a", binary=True) == body


def test_a_body_has_as_much_time_as_an_answer(narrow, s3_folder, monkeypatch):
    """More than the time of a connect, for which another limit stands."""
    monkeypatch.setattr(s3_http, "_LONGEST_CONNECT", 0.2)
    mox.file.set_auth(retry=0)
    narrow.limit_uploads(100_000)
    narrow.fail("slow_upload", 1)
    mox.file.write(f"{s3_folder}/a", os.urandom(200_000), binary=True)


def test_an_upload_of_which_nothing_is_taken(narrow, s3_folder):
    mox.file.set_auth(retry=0, client_timeout=0.3)
    narrow.limit_uploads(10)
    narrow.fail("slow_upload", 1)
    started = time.monotonic()
    with pytest.raises(mox.file.MoxFileRespException, match="PUT"):
        mox.file.write(f"{s3_folder}/a", os.urandom(2 << 20), binary=True)
    assert time.monotonic() - started < 10


def test_an_answer_with_another_part_of_the_object(proxy, s3_folder):
    content = os.urandom(200_000)
    mox.file.write(f"{s3_folder}/a", content, binary=True)
    with mox.file.File(f"{s3_folder}/a", "rb") as f:
        f.seek(100_000)
        proxy.fail("other_range", 1)
        assert f.read(1000) == content[100_000:101_000]
        assert proxy.unused == 0
        proxy.fail("other_range", float("inf"))
        f.seek(180_000)
        with pytest.raises(mox.file.MoxFileReadException, match="another part"):
            f.read(1000)


def test_an_object_that_is_replaced_between_two_attempts(proxy, s3_folder, monkeypatch):
    url = f"{s3_folder}/a"
    mox.file.write(url, "old" * 100)
    original = s3_http.Requester.pause_or_fail

    def replace_and_pause(*args):
        s3_http.Requester.pause_or_fail = original
        mox.file.write(url, "the new one")
        original(*args)

    proxy.fail("truncate", 1)
    monkeypatch.setattr(s3_http.Requester, "pause_or_fail", replace_and_pause)
    assert mox.file.read(url) == "the new one"

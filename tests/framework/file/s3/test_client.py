"""The client below `mox.file`: signatures, regions, listings of older stores, errors."""

import os
from concurrent.futures import ThreadPoolExecutor

import fault_proxy
import pytest

import moxing as mox
from moxing.framework.file.s3 import http as s3_http
from moxing.framework.file.s3.clients import get_client


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
    with pytest.raises(mox.file.MoxFileRespException, match="does not advance"):
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


def test_a_body_that_is_slow_but_complete(proxy, s3_folder):
    """The time limit strikes with the last byte: asked for the rest, the store would say that there is none."""
    mox.file.write(f"{s3_folder}/a", "abcd")
    mox.file.set_auth(client_timeout=0.35)
    proxy.fail("slow", 1)
    assert mox.file.read(f"{s3_folder}/a") == "abcd"


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
        with pytest.raises(mox.file.MoxFileReadException, match="another range of the object"):
            f.read(1000)


def test_an_object_that_is_replaced_between_two_attempts(proxy, s3_folder, monkeypatch):
    url = f"{s3_folder}/a"
    mox.file.write(url, "old" * 100)
    original = s3_http.HttpClient.wait_or_raise

    def replace_and_pause(*args):
        s3_http.HttpClient.wait_or_raise = original
        mox.file.write(url, "the new one")
        original(*args)

    proxy.fail("truncate", 1)
    monkeypatch.setattr(s3_http.HttpClient, "wait_or_raise", replace_and_pause)
    assert mox.file.read(url) == "the new one"

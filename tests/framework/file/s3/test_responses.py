"""Error responses become exceptions that say why."""

import pytest
import store_server

import moxing as mox
from moxing.framework.file.auth import Settings, restore_settings
from moxing.framework.file.errors import StoreResponse
from moxing.framework.file.s3.responses import make_exception, parse_error


@pytest.fixture(autouse=True)
def no_settings(own_settings):
    restore_settings(Settings())


def test_why_keys_are_refused(s3_folder):
    """The answer to HEAD has no body; the reason is asked for."""
    mox.file.write(f"{s3_folder}/x", "x")
    mox.file.set_auth(ak=store_server.ACCESS_KEY, sk="another")
    calls = (mox.file.exists, mox.file.read, mox.file.stat, mox.file.list_directory, mox.file.is_directory)
    for call in calls:
        with pytest.raises(mox.file.MoxFileRespException) as caught:
            call(f"{s3_folder}/x")
        assert caught.value.resp.code == "SignatureDoesNotMatch", call
        assert "the keys came from set_auth" in str(caught.value)
        # Also of a listing, which asks the bucket.
        assert caught.value.filename.rstrip("/") == f"{s3_folder}/x"
    with pytest.raises(mox.file.MoxFileRespException, match="SignatureDoesNotMatch"):
        mox.file.exists(s3_folder.rpartition("/")[0])


def test_a_bucket_that_is_not_there(s3_folder):
    for call in (mox.file.stat, mox.file.list_directory, mox.file.get_size):
        with pytest.raises(FileNotFoundError, match="no such bucket: 's3://nosuchbucket'"):
            call("s3://nosuchbucket")


@pytest.mark.parametrize("read", [mox.file.read, mox.file.File])
def test_a_read_tells_of_a_missing_bucket(proxy, s3_folder, read):
    proxy.fail("no_bucket", 1)
    with pytest.raises(mox.file.MoxFileNotExistsException, match="the bucket does not exist .GET: 404 NoSuchBucket"):
        read(f"{s3_folder}/a")
    assert len(proxy.requests) == 1


def test_a_missing_bucket(s3_folder):
    url = "s3://no-such-bucket-here"
    assert not mox.file.exists(f"{url}/a")
    assert not mox.file.exists(url)
    assert not mox.file.is_directory(url)
    for call in (mox.file.read, mox.file.stat, mox.file.list_directory, mox.file.make_dirs):
        with pytest.raises(mox.file.MoxFileNotExistsException):
            call(f"{url}/a")
    with pytest.raises(mox.file.MoxFileNotExistsException, match="NoSuchBucket"):
        mox.file.write(f"{url}/a", "x")


@pytest.mark.parametrize("operation", ["copy", "copy_parallel", "rename"])
def test_a_copy_inside_the_store_into_a_bucket_that_is_not_there(proxy, s3_folder, operation):
    """It is not the source that is missing. (The store of the tests has no words for it.)"""
    mox.file.write(f"{s3_folder}/d/a", "x")
    names = ("d", "d") if operation == "copy_parallel" else ("d/a", "a")
    proxy.fail("no_bucket", 1, lambda method, target: method == "PUT")
    with pytest.raises(mox.file.MoxFileNotExistsException, match="NoSuchBucket") as caught:
        getattr(mox.file, operation)(f"{s3_folder}/{names[0]}", f"s3://no-such-bucket-here/{names[1]}")
    assert caught.value.filename.startswith("s3://no-such-bucket-here/")
    assert mox.file.read(f"{s3_folder}/d/a") == "x"
    with pytest.raises(mox.file.MoxFileNotExistsException, match="src_url"):
        getattr(mox.file, operation)(f"{s3_folder}/none", f"{s3_folder}/copy")


def test_errors_become_exceptions():
    body = b"<Error><Code>SlowDown</Code><Message>less</Message><RequestId>7</RequestId></Error>"
    assert parse_error(503, {}, body) == StoreResponse(503, "SlowDown", "less", "7")
    assert parse_error(500, {"x-obs-request-id": "8"}, b"<html").request_id == "8"
    assert parse_error(400, {}, b"<Error><Code>RequestTimeout</Code></Error>").is_transient
    assert not parse_error(400, {}, b"").is_transient
    assert not StoreResponse(0, "BadCertificate", "").is_transient
    kinds = {
        ("GET", 503): mox.file.MoxFileReadException,
        ("PUT", 503): mox.file.MoxFileRespException,
        ("GET", 403): mox.file.MoxFileRespException,
        ("PUT", 404): mox.file.MoxFileNotExistsException,
    }
    for (method, status), kind in kinds.items():
        assert type(make_exception(StoreResponse(status, "X", ""), method, "s3://b/k", "set_auth", 1)) is kind

"""Uploads and copies in parts."""

from concurrent.futures import wait

import fault_proxy
import pytest
from large_object import LARGE, uploads

import moxing as mox
from moxing.framework.file.s3 import client as s3_client
from moxing.framework.file.s3 import multipart as s3_multipart
from moxing.framework.file.s3.clients import get_client
from moxing.framework.file.s3.http import Request
from moxing.framework.file.s3.multipart import MultipartUpload

MB = 1 << 20


def test_copies_in_parts_inside_the_store(large, s3_folder, monkeypatch):
    monkeypatch.setattr(s3_client, "LARGEST_COPY", 6 * MB)
    monkeypatch.setattr("moxing.framework.file.s3.multipart._COPY_PART_SIZE", 6 * MB)
    mox.file.copy(large, f"{s3_folder}/parts")
    assert mox.file.read(f"{s3_folder}/parts", binary=True) == LARGE
    assert get_client("s3").head("tests", f"{s3_folder}/parts".removeprefix("s3://tests/")).etag.endswith('-4"')


def test_a_copy_in_parts_is_like_one_in_a_single_request(s3_folder, monkeypatch):
    client, prefix = get_client("s3"), s3_folder.removeprefix("s3://tests/")
    given = {"content-type": "text/x-own", "cache-control": "no-store", "x-amz-meta-note": "two  words"}
    client.send(Request("PUT", "tests", f"{prefix}/a", headers=given, body=bytes(6 * MB)))
    mox.file.copy(f"{s3_folder}/a", f"{s3_folder}/single")
    # What a slow store copies within the usual time limit of a request.
    assert s3_client.LARGEST_COPY <= 256 * MB
    assert s3_multipart._COPY_PART_SIZE <= 256 * MB
    monkeypatch.setattr(s3_client, "LARGEST_COPY", 5 * MB)
    monkeypatch.setattr(s3_multipart, "_COPY_PART_SIZE", 5 * MB)
    mox.file.copy(f"{s3_folder}/a", f"{s3_folder}/parts")
    for name in ("single", "parts"):
        found = client.send(Request("HEAD", "tests", f"{prefix}/{name}")).headers
        assert {key: " ".join(found[key].split()) for key in given} == {**given, "x-amz-meta-note": "two words"}
        assert ("-2" in found["etag"]) == (name == "parts")


def parts(method, target):
    return method == "PUT" and "partNumber=3" in target


def test_a_failed_part_leaves_nothing(proxy, s3_folder, tmp_path):
    (tmp_path / "large").write_bytes(LARGE)
    mox.file.set_auth(retry=1)
    for write in (
        lambda: mox.file.copy(tmp_path / "large", f"{s3_folder}/x"),
        lambda: mox.file.write(f"{s3_folder}/x", LARGE, binary=True),
        lambda: mox.file.copy_parallel(tmp_path, f"{s3_folder}/d"),
    ):
        proxy.fail("500", float("inf"), parts)
        with pytest.raises(mox.file.MoxFileRespException):
            write()
    with pytest.raises(mox.file.MoxFileRespException), mox.file.File(f"{s3_folder}/x", "wb") as f:
        f.write(LARGE)
    assert mox.file.list_directory("s3://tests", recursive=True, skip_dir=True).count("x") == 0
    assert not mox.file.exists(s3_folder)
    assert uploads(s3_folder) == 0


@pytest.mark.parametrize("fault", fault_proxy.FAULTS)
@pytest.mark.parametrize("step", ["uploads=", "partNumber=2", "uploadId="])
def test_faults_during_an_upload_in_parts(proxy, s3_folder, tmp_path, fault, step):
    (tmp_path / "large").write_bytes(LARGE)
    mox.file.set_auth(client_timeout=0.7 if fault in ("slow", "silent") else 20)
    proxy.fail(fault, 1, lambda method, target: step in target and (step != "uploadId=" or method == "POST"))
    mox.file.copy(tmp_path / "large", f"{s3_folder}/x")
    assert proxy.unused == 0
    mox.file.set_auth(client_timeout=20)
    assert mox.file.read(f"{s3_folder}/x", binary=True) == LARGE


def completes(method, target):
    return method == "POST" and "uploadId=" in target


@pytest.mark.parametrize("fault", ["", "reset", "not_found"])
def test_an_upload_that_is_gone_is_not_taken_for_done(proxy, large, fault):
    """Not even if an object with as many parts is there: it is the old one."""
    client, key = get_client("s3"), large.removeprefix("s3://tests/")
    upload = MultipartUpload(client, "tests", key)
    for _ in range(3):
        upload.add_part(lambda: b"new")
    wait(upload._parts)
    assert client.head("tests", key).etag.endswith('-3"')
    client.send(Request("DELETE", "tests", key, query={"uploadId": upload._id}))
    proxy.fail(fault, 1, completes)
    with pytest.raises(mox.file.MoxFileRespException, match="the parts could not be completed") as caught:
        upload.complete()
    assert caught.value.resp.status == 404
    assert caught.value.resp.code == ("NotFound" if fault == "not_found" else "NoSuchUpload")
    proxy.fail("", 0)
    assert mox.file.read(large, binary=True) == LARGE


def test_an_answer_that_only_begins_well(proxy, s3_folder):
    """A store may answer 200 at once and tell of a failure in the body."""
    error = fault_proxy.ERROR.format("InternalError").encode()
    broken = []

    def fail(target, body):
        if "uploadId=" not in target or "partNumber=" in target or len(broken) == times:
            return body
        broken.append(target)
        return error

    proxy.rewrite, times = fail, 1
    mox.file.write(f"{s3_folder}/a", LARGE, binary=True)
    assert len(broken) == 1
    assert mox.file.read(f"{s3_folder}/a", binary=True) == LARGE
    times = 100
    mox.file.set_auth(retry=0)
    with pytest.raises(mox.file.MoxFileRespException) as caught:
        mox.file.write(f"{s3_folder}/b", LARGE, binary=True)
    assert (caught.value.resp.status, caught.value.resp.code) == (200, "InternalError")

"""Part sizes and ETags."""

from moxing.framework.file.s3.clients import get_client
from moxing.framework.file.s3.etags import combined_etag, part_size_for
from moxing.framework.file.s3.multipart import MultipartUpload

MB = 1 << 20


def test_parts_stay_below_the_number_that_a_store_takes():
    for size in (1, 1 << 30, 5 << 40):
        assert -(-size // part_size_for(size)) <= 10_000


def test_what_the_etag_of_parts_is(s3_folder):
    """It tells after a lost answer whether the object is there."""
    client, key = get_client("s3"), f"{s3_folder}/a".removeprefix("s3://tests/")
    upload = MultipartUpload(client, "tests", key)
    upload.add_all([lambda: bytes(5 * MB), lambda: b"end"])
    assert client.head("tests", key).etag == f'"{combined_etag([part.result().etag for part in upload._parts])}"'
    assert combined_etag(['"opaque"']) is None

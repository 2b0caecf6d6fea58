"""What a store reports about an object."""

from moxing.framework.file.s3.object_client import ObjectInfo


def test_when_an_etag_is_an_md5():
    assert ObjectInfo(1, 0, '"5d41402abc4b2a76b9719d911017c592"').md5 == "5d41402abc4b2a76b9719d911017c592"
    assert ObjectInfo(1, 0, '"5d41402abc4b2a76b9719d911017c592"', encrypted=True).md5 is None
    assert ObjectInfo(1, 0, '"5d41402abc4b2a76b9719d911017c592-3"').md5 is None
    assert ObjectInfo(1, 0, "").md5 is None

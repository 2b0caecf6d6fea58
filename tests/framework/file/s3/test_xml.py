"""Listings and other XML of S3."""

from moxing.framework.file.s3.xml import parse_http_date, parse_iso_date, parse_list


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

"""Reading objects in ranges."""

import pytest
from large_object import LARGE

import moxing as mox

MB = 1 << 20


def test_partial_reads_fetch_ranges(proxy, large):
    proxy.sent = 0
    with mox.file.File(large, "rb") as f:
        f.seek(15 * MB)
        assert f.read(100) == LARGE[15 * MB : 15 * MB + 100]
        f.seek(-3, 2)
        assert f.read() == b"end"
    assert proxy.sent < MB
    proxy.requests.clear()
    with mox.file.File(large, "rb") as f:
        while f.read(10_000):
            pass
    # From front to back the ranges grow: far fewer requests than pieces.
    assert len(proxy.requests) < 15


def test_an_object_that_is_replaced_while_it_is_read(large):
    with mox.file.File(large, "rb") as f:
        f.read(10)
        mox.file.write(large, "other")
        with pytest.raises(mox.file.MoxFileReadException, match="changed while it was read"):
            f.read()

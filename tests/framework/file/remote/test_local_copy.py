"""Remote files that are written locally first."""

import contextlib
import resource

import pytest

import moxing as mox


@contextlib.contextmanager
def full_disk(size):
    """No file of this process gets larger."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("mode", ["wb", "ab", "rb+"])
@pytest.mark.parametrize("change", ["write", "truncate"])
def test_a_write_that_fails_changes_nothing(s3_folder, mode, change):
    """Python closes a file whose last write has failed all the same."""
    url = f"{s3_folder}/file"
    mox.file.write(url, "old")
    f = mox.file.File(url, mode)
    with full_disk(100_000):
        f.write(b"some")
        with pytest.raises(OSError, match="File too large"):
            if change == "truncate":
                f.truncate(200_000)
            f.write(bytes(200_000))
            f.close()
        f.close()
    assert mox.file.read(url) == "old"

"""Writing objects part by part."""

import zipfile

import pytest
from large_object import LARGE, uploads

import moxing as mox


def test_what_is_written_appears_on_close(s3_folder):
    url = f"{s3_folder}/file"
    mox.file.write(url, "old")
    f = mox.file.File(url, "wb")
    f.write(LARGE)
    f.flush()
    assert uploads(s3_folder) == 1
    assert mox.file.read(url) == "old"
    f.close()
    assert mox.file.read(url, binary=True) == LARGE
    with pytest.raises(KeyError), mox.file.File(url, "wb") as f:
        f.write(LARGE)
        raise KeyError("in the block")
    assert mox.file.read(url, binary=True) == LARGE
    with pytest.raises(KeyError), mox.file.File(url, "ab") as f:
        f.write(b"more")
        raise KeyError("in the block")
    assert mox.file.read(url, binary=True) == LARGE
    assert uploads(s3_folder) == 0


def test_a_writer_that_goes_back(s3_folder, tmp_path):
    """A zip archive goes back to the header of an entry when it knows its size."""
    url = f"{s3_folder}/archive.zip"
    with mox.file.File(url, "wb") as f, zipfile.ZipFile(f, "w") as archive:
        with archive.open("large", "w") as entry:
            entry.write(LARGE)
        archive.writestr("small", "s")
    with mox.file.File(url, "rb") as f, zipfile.ZipFile(f) as archive:
        assert archive.read("large") == LARGE
        assert archive.testzip() is None
    with mox.file.File(f"{s3_folder}/shorter", "wb") as f:
        f.write(LARGE)
        f.truncate(5)
    assert mox.file.read(f"{s3_folder}/shorter", binary=True) == LARGE[:5]

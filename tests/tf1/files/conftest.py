"""What the tests of TensorFlow's file functions share."""

import pytest

from moxing.framework import file


@pytest.fixture(params=["local", "s3"])
def folder(request, tmp_path):
    """A local directory, then the url of a directory on a store: the same calls must work on both."""
    if request.param == "local":
        (tmp_path / "folder").mkdir()
        return str(tmp_path / "folder")
    url = request.getfixturevalue("s3_folder")
    file.make_dirs(url)
    return url

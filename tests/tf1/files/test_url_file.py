"""File objects of TensorFlow on urls."""

from __future__ import annotations

import pytest

from moxing.tf1.files import gfile


def test_the_size_of_a_file_that_is_written(folder):
    with gfile.GFile(folder + "/x", "w") as stream:
        stream.write("abc")
        stream.flush()
        assert stream.size() == 3
    with gfile.GFile(folder + "/x", "a") as stream:
        assert stream.size() == 3
        stream.write("de")
        stream.flush()
        assert stream.size() == 5


def test_text_of_a_binary_file_is_its_bytes_as_in_python_2(tmp_path):
    image, text = b"\xff\xd8\xff\xe0JFIF", "naïve\n"
    (tmp_path / "image.jpg").write_bytes(image)
    (tmp_path / "text.txt").write_text(text)
    assert gfile.FastGFile(str(tmp_path / "image.jpg"), "r").read() == image
    assert gfile.GFile(str(tmp_path / "text.txt"), "r").read() == text


def test_a_block_that_fails_writes_nothing(s3_folder):
    with pytest.raises(ZeroDivisionError), gfile.Open(s3_folder + "/x", "w") as stream:
        stream.write("half")
        raise ZeroDivisionError
    assert not gfile.Exists(s3_folder + "/x")

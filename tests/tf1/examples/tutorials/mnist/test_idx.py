"""The IDX format of the MNIST files."""

import gzip
import struct

import pytest

from moxing.tf1.examples.tutorials.mnist import idx

LABELS = struct.pack(">2I", 2049, 3) + bytes([7, 0, 9])


def test_compression_is_recognized_by_content(tmp_path):
    for name, content in (("plain.gz", LABELS), ("packed", gzip.compress(LABELS))):
        (tmp_path / name).write_bytes(content)
        assert idx.read_labels(str(tmp_path / name)).tolist() == [7, 0, 9]


def test_a_file_is_found_with_and_without_its_suffix(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"MNIST file not found: .*a.gz \(nor without .gz\)"):
        idx.find(str(tmp_path), "a.gz")
    (tmp_path / "a").touch()
    assert idx.find(str(tmp_path), "a.gz") == str(tmp_path / "a")
    (tmp_path / "a.gz").touch()
    assert idx.find(str(tmp_path), "a.gz") == str(tmp_path / "a.gz")


def test_images_have_a_channel(tmp_path):
    (tmp_path / "images").write_bytes(struct.pack(">4I", 2051, 2, 1, 3) + bytes(range(6)))
    images = idx.read_images(str(tmp_path / "images"))
    assert images.shape == (2, 1, 3, 1) and images.ravel().tolist() == list(range(6))

"""Label files of single images."""

import pytest
from image_folders import multilabel, put

from moxing.tensorflow.datasets.raw.label_files import read_sample_labels
from moxing.tensorflow.datasets.raw.raw_metadata import MultilabelClassificationRawMetadata


@pytest.mark.parametrize(
    ("labels", "names", "separator", "said"),
    [
        ({"0.jpg": "red rose\ndaisy\n", "1.jpg": "daisy"}, ["daisy", "red rose"], "\n", "line ends"),
        ({"0.jpg": "cat dog", "1.jpg": "dog\tbird\r\n"}, ["bird", "cat", "dog"], " ", "white space"),
        ({"0.jpg": "cat", "1.jpg": "\ufeffdog\r\n", "2.jpg": ""}, ["cat", "dog"], "\n", "line ends"),
    ],
)
def test_multilabel_names_are_collected(tmp_path, logged, labels, names, separator, said):
    multilabel(tmp_path, labels)
    metadata = MultilabelClassificationRawMetadata(tmp_path)
    assert (metadata.labels_list, metadata.guessed_label_sep) == (names, separator)
    (line,) = logged["info"]
    assert f"split at {said}: 0: {names[0]!r}" in line
    collected = {name for path in metadata.label_paths for name in read_sample_labels(path, separator)}
    assert collected == set(names)


def test_label_files_without_an_image(tmp_path, logged):
    multilabel(tmp_path, {"0.jpg": "a"})
    put(tmp_path, "labels/1.jpg.txt", "labels/2.jpg.txt", "labels/notes.md", "images/notes.md")
    assert MultilabelClassificationRawMetadata(tmp_path).total_num_samples == 1
    (line,) = logged["warning"]
    assert line.startswith("2 label files in") and "'1.jpg.txt', '2.jpg.txt'" in line
    assert any("not images: 1 .md" in line for line in logged["info"])


@pytest.mark.parametrize(
    ("content", "separator", "names"),
    [
        (b"cat\r\n red rose \n\ncat\n", "\n", ["cat", "red rose"]),
        (b"\xef\xbb\xbfcat, red rose,,cat\ndog", ",", ["cat", "red rose", "dog"]),
        (b"cat  dog\tbird\n", " ", ["cat", "dog", "bird"]),
        (b"red rose\tdog\n", "\t", ["red rose", "dog"]),
        ("猫;犬".encode(), ";", ["猫", "犬"]),
        (b"caf\xe9", "\n", ["caf\udce9"]),
        (b"", "\n", []),
    ],
)
def test_labels_of_one_sample(tmp_path, content, separator, names):
    put(tmp_path, "0.jpg.txt", content=content)
    assert read_sample_labels(tmp_path / "0.jpg.txt", separator) == names


def test_labels_of_one_sample_need_a_separator(tmp_path):
    for separator in ("", None):
        with pytest.raises(ValueError, match="label_sep="):
            read_sample_labels(tmp_path / "x", separator)

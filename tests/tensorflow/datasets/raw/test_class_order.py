"""The order of the classes, and errors that name what is wrong with a folder."""

import unicodedata

import numpy as np
import pytest
from image_folders import labels_txt, put

from moxing.tensorflow.datasets.raw.raw_metadata import ImageClassificationRawMetadata


def test_labels_txt_gives_the_order(tmp_path, logged):
    put(tmp_path, "a/1.jpg", "b/1.jpg", "b/2.jpg")
    labels_txt(tmp_path, "0: b\n1: a\n")
    metadata = ImageClassificationRawMetadata(tmp_path)
    assert metadata.labels_list == ["b", "a"]
    assert metadata.paths == [f"{tmp_path}/{name}" for name in ("b/1.jpg", "b/2.jpg", "a/1.jpg")]
    np.testing.assert_array_equal(metadata.labels, [0, 0, 1])
    assert logged == {"info": [], "warning": []}


def test_labels_and_folders_that_do_not_fit_are_all_in_one_error(tmp_path):
    put(tmp_path, "daisy/1.jpg", "Roses/1.jpg", "sunflower/1.jpg", "other/1.jpg")
    labels_txt(tmp_path, "0: daisy\n1: roses\n2: sunflowers\n3: tulips\n")
    with pytest.raises(ValueError) as caught:
        ImageClassificationRawMetadata(tmp_path)
    message = str(caught.value)
    assert "labels without a folder: 'roses' (near 'Roses'), 'sunflowers' (near 'sunflower'), 'tulips';" in message
    assert "folders without a label: 'Roses' (near 'roses'), 'other', 'sunflower' (near 'sunflowers')." in message
    assert f"{str(tmp_path / 'labels.txt')!r} does not fit" in message


def test_one_kind_of_misfit(tmp_path):
    put(tmp_path, "daisy/1.jpg", "daisy_2/1.jpg", *(f"x{i}/1.jpg" for i in range(12)))
    labels_txt(tmp_path, "0: daisy\n")
    with pytest.raises(ValueError, match=r"folders without a label: 'daisy_2' \(near 'daisy'\), 'x0'.* and 3 more\.$"):
        ImageClassificationRawMetadata(tmp_path)


def test_names_that_look_the_same(tmp_path):
    composed, decomposed = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))
    put(tmp_path, f"{decomposed}/1.jpg")
    labels_txt(tmp_path, f"0: {composed}\n")
    with pytest.raises(ValueError, match=r"the same letters as 'cafe\\u0301', but in another Unicode form"):
        ImageClassificationRawMetadata(tmp_path)


def test_empty_class_folders_are_named(tmp_path):
    put(tmp_path, "a/1.jpg", "only_text/x.txt")
    for index in range(11):
        (tmp_path / f"e{index:02}").mkdir()
    with pytest.raises(ValueError, match=r"class folders 'e00', .*'e09' and 2 more \(not images: 1 \.txt\)\. Put"):
        ImageClassificationRawMetadata(tmp_path)


@pytest.mark.parametrize(
    ("names", "folders", "message"),
    [
        ([], [], "it is empty"),
        (["1.jpg", "2.jpg"], [], r"only files, no class folders: '1\.jpg', '2\.jpg'"),
        (["labels.txt"], ["a", "b"], "folders are all empty: 'a', 'b'"),
        (["a/x.pdf"], ["b"], r"folders are all empty: 'a', 'b' \(not images: 1 \.pdf\)"),
        ([".hidden/1.jpg", "__MACOSX/a/1.jpg"], [], "it is empty"),
    ],
)
def test_no_images_at_all(tmp_path, names, folders, message):
    put(tmp_path, *names)
    for folder in folders:
        (tmp_path / folder).mkdir()
    with pytest.raises(
        ValueError, match=f"^base_dir='.*' has no images, .*{message}.*Expected base_dir/<class>/<image>"
    ):
        ImageClassificationRawMetadata(tmp_path)


@pytest.mark.parametrize("name", ["cat ", " cat", "a\nb"])
def test_class_names_that_no_labels_file_can_hold(tmp_path, name):
    put(tmp_path, f"{name}/1.jpg")
    with pytest.raises(ValueError, match="fit into labels.txt.*Rename"):
        ImageClassificationRawMetadata(tmp_path)


def test_the_parent_of_the_splits_is_warned_of(tmp_path, logged):
    put(tmp_path, "train/a/1.jpg", "eval/a/1.jpg")
    assert ImageClassificationRawMetadata(tmp_path).labels_list == ["eval", "train"]
    (line,) = logged["warning"]
    assert "'eval', 'train' and count as classes" in line
    put(tmp_path, "other/1.jpg")
    logged["warning"].clear()
    ImageClassificationRawMetadata(tmp_path)
    assert logged["warning"] == []


def test_stray_images_and_other_files_are_told(tmp_path, logged):
    put(tmp_path, "a/1.jpg", "a/x.txt", "a/y.txt", "s1.jpg", "s2.PNG", "README")
    assert ImageClassificationRawMetadata(tmp_path).total_num_samples == 1
    (warning,) = logged["warning"]
    assert warning.startswith("2 images lie in base_dir=") and "'s1.jpg', 's2.PNG'" in warning
    assert [line for line in logged["info"] if "not images: 2 .txt." in line]

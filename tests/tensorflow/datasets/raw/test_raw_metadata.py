"""The metadata classes: classes, samples, and errors that name what is wrong."""

import inspect
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from image_folders import labels_txt, multilabel, put

from moxing.tensorflow.datasets.raw.raw_metadata import (
    ImageClassificationRawMetadata,
    MultilabelClassificationRawMetadata,
)

# --- one label per image ---------------------------------------------------------------------------------------------


def test_signatures_are_the_documented_ones():
    def defaults(function):
        return {name: value.default for name, value in inspect.signature(function).parameters.items()}

    empty = inspect.Parameter.empty
    one = {"base_dir": empty, "redirect_dir": None, "labels_filename": "labels.txt"}
    assert defaults(ImageClassificationRawMetadata) == one
    several = {"images_sub_dir": "images", "labels_sub_dir": "labels", "labels_extension": "txt"}
    assert defaults(MultilabelClassificationRawMetadata) == one | several


def test_samples_and_classes(tmp_path, logged):
    put(tmp_path, "b/2.jpg", "b/1.jpg", "a/x.JPG", "label_10/1.jpg", "label_2/1.jpg", "label_2/sub/0.jpg")
    with tf.Graph().as_default() as graph:
        metadata = ImageClassificationRawMetadata(str(tmp_path))
        assert graph.get_operations() == []
    assert metadata.total_num_samples == 6
    assert metadata.num_classes == 4
    assert metadata.labels_list == ["a", "b", "label_10", "label_2"]
    assert metadata.labels_to_names == {0: "a", 1: "b", 2: "label_10", 3: "label_2"}
    assert metadata.names_to_labels == {"a": 0, "b": 1, "label_10": 2, "label_2": 3}
    assert metadata.class_counts == {"a": 1, "b": 2, "label_10": 1, "label_2": 2}
    names = ["a/x.JPG", "b/1.jpg", "b/2.jpg", "label_10/1.jpg", "label_2/1.jpg", "label_2/sub/0.jpg"]
    assert metadata.paths == [f"{tmp_path}/{name}" for name in names]
    np.testing.assert_array_equal(metadata.labels, [0, 1, 1, 2, 3, 3])
    assert metadata.labels.dtype == np.int64
    assert metadata.base_dir == str(tmp_path)
    assert logged["warning"] == []
    (line,) = logged["info"]
    assert f"There is no labels.txt in {str(tmp_path)!r}" in line
    assert "in the order of their names: 0: 'a', 1: 'b', 2: 'label_10', 3: 'label_2'." in line


def test_no_labels_file_or_another_one(tmp_path, logged):
    put(tmp_path, "a/1.jpg", "b/1.jpg")
    labels_txt(tmp_path, "0: b\n1: a\n")
    assert ImageClassificationRawMetadata(tmp_path, labels_filename=None).labels_list == ["a", "b"]
    assert "No labels file is used" in logged["info"][0]
    (tmp_path / "other.map").write_text("b\na\n")
    assert ImageClassificationRawMetadata(tmp_path, labels_filename="other.map").labels_list == ["b", "a"]
    with pytest.raises(ValueError, match=r"labels_filename='lables.txt': there is no file"):
        ImageClassificationRawMetadata(tmp_path, labels_filename="lables.txt")
    with pytest.raises(ValueError, match="labels_filename=''"):
        ImageClassificationRawMetadata(tmp_path, labels_filename="")


def test_a_labels_txt_that_is_a_broken_link_is_not_overlooked(tmp_path):
    put(tmp_path, "a/1.jpg")
    (tmp_path / "labels.txt").symlink_to("gone.txt")
    with pytest.raises(FileNotFoundError, match=r"labels\.txt"):
        ImageClassificationRawMetadata(tmp_path)


def test_a_wrong_labels_txt_names_the_line(tmp_path):
    put(tmp_path, "a/1.jpg")
    labels_txt(tmp_path, "0: a\nb\n")
    with pytest.raises(ValueError, match=r"labels\.txt' line 2: 'b' has no index"):
        ImageClassificationRawMetadata(tmp_path)


def test_a_missing_base_dir(tmp_path):
    with pytest.raises(ValueError, match="base_dir='.*none' does not exist"):
        ImageClassificationRawMetadata(tmp_path / "none")


def test_hostile_names_survive_into_the_graph(tmp_path, logged):
    folder = os.fsdecode(b"cl\xff \xf0\x9f\x8c\xbb: x")
    names = ["a b.jpg", "深.jpg", os.fsdecode(b"\xe9\xff.jpg"), "🚀", "%d %s.jpg"]
    put(tmp_path, *(f"{folder}/{name}" for name in names), content=b"content")
    (tmp_path / "labels.txt").write_bytes(b"0: " + os.fsencode(folder))
    metadata = ImageClassificationRawMetadata(tmp_path)
    assert metadata.labels_list == [folder]
    with tf.Graph().as_default(), tf.Session() as session:
        contents = [tf.read_file(os.fsencode(path)) for path in metadata.paths]
        assert session.run(contents) == [b"content"] * len(names)
    ImageClassificationRawMetadata(tmp_path, labels_filename=None)
    for line in logged["info"]:
        line.encode()  # it can be printed


def test_redirect_dir(tmp_path):
    put(tmp_path, "far/a/1.jpg", "far/a/2.jpg", "far/b/s/1.jpg", "near/a/1.jpg", "near/a/2.jpg", "near/b/s/1.jpg")
    put(tmp_path, "near/c/1.jpg")
    metadata = ImageClassificationRawMetadata(tmp_path / "far", redirect_dir=tmp_path / "near")
    assert metadata.paths == [f"{tmp_path}/near/{name}" for name in ("a/1.jpg", "a/2.jpg", "b/s/1.jpg")]
    assert metadata.base_dir == f"{tmp_path}/far"
    os.remove(tmp_path / "near/b/s/1.jpg")
    with pytest.raises(
        ValueError, match="redirect_dir='.*near' is not a copy of base_dir: there is no file '.*near/b/s/1.jpg'"
    ):
        ImageClassificationRawMetadata(tmp_path / "far", tmp_path / "near")
    with pytest.raises(ValueError, match="redirect_dir='.*none' does not exist"):
        ImageClassificationRawMetadata(tmp_path / "far", tmp_path / "none")


@pytest.mark.realdata
def test_real_photos(real_data):
    metadata = ImageClassificationRawMetadata(real_data / "flowers")
    assert metadata.labels_list == ["daisy", "dandelion", "roses", "sunflowers", "tulips"]
    assert metadata.total_num_samples == sum(metadata.class_counts.values()) == len(metadata.labels) > 100
    assert all(path.endswith(".jpg") for path in metadata.paths)


# --- several labels per image ----------------------------------------------------------------------------------------


def test_multilabel_with_labels_txt(tmp_path, logged):
    multilabel(tmp_path, {"0.jpg": "cat\ndog", "sub/1.jpg": "dog"}, ["2.jpg"])
    labels_txt(tmp_path, "0: dog\n1: cat\n2: never seen\n")
    metadata = MultilabelClassificationRawMetadata(str(tmp_path))
    assert (metadata.total_num_samples, metadata.num_classes) == (3, 3)
    assert metadata.labels_list == ["dog", "cat", "never seen"]
    assert metadata.labels_to_names == {0: "dog", 1: "cat", 2: "never seen"}
    assert metadata.names_to_labels == {"dog": 0, "cat": 1, "never seen": 2}
    assert metadata.paths == [f"{tmp_path}/images/{name}" for name in ("0.jpg", "2.jpg", "sub/1.jpg")]
    assert metadata.label_paths == [f"{tmp_path}/labels/0.jpg.txt", None, f"{tmp_path}/labels/sub/1.jpg.txt"]
    assert metadata.guessed_label_sep is None
    assert logged == {"info": [], "warning": []}


def test_multilabel_other_names_for_everything(tmp_path):
    put(tmp_path, "p/0.jpg", "t/0.jpg.lab", "copy/p/0.jpg", "copy/t/0.jpg.lab", content=b"x")
    for extension in ("lab", ".lab"):
        metadata = MultilabelClassificationRawMetadata(tmp_path, "p", "t", extension, tmp_path / "copy", None)
        assert metadata.paths == [f"{tmp_path}/copy/p/0.jpg"]
        assert metadata.label_paths == [f"{tmp_path}/copy/t/0.jpg.lab"]
        assert metadata.labels_list == ["x"]
    os.remove(tmp_path / "copy/t/0.jpg.lab")
    with pytest.raises(ValueError, match="no file '.*copy/t/0.jpg.lab'"):
        MultilabelClassificationRawMetadata(tmp_path, "p", "t", "lab", tmp_path / "copy")


def test_multilabel_errors(tmp_path):
    def metadata(**arguments):
        return MultilabelClassificationRawMetadata(tmp_path, **arguments)

    with pytest.raises(ValueError, match="images_sub_dir='images': base_dir='.*' has no such folder"):
        metadata()
    (tmp_path / "images").mkdir()
    with pytest.raises(ValueError, match="There are no images in '.*/images'"):
        metadata()
    put(tmp_path, "images/0.jpg")
    with pytest.raises(ValueError, match="labels_sub_dir='labels'"):
        metadata()
    put(tmp_path, "labels/0.txt")
    with pytest.raises(
        ValueError, match=r"No image has a label file in .*expected for instance '0.jpg.txt', found '0.txt'"
    ):
        metadata()
    put(tmp_path, "labels/0.jpg.txt")
    with pytest.raises(ValueError, match="are all empty"):
        metadata()
    with pytest.raises(ValueError, match="labels_extension=''"):
        metadata(labels_extension="")

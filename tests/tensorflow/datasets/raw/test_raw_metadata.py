"""The metadata classes: classes, samples, and errors that name what is wrong."""

import inspect
import os
import unicodedata

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets.raw import raw_metadata
from moxing.tensorflow.datasets.raw.raw_metadata import (
    ImageClassificationRawMetadata,
    MultilabelClassificationRawMetadata,
    read_sample_labels,
)


@pytest.fixture
def logged(monkeypatch):
    """The log lines by level; the tensorflow logger may be silent in another test's wake."""
    lines = {"info": [], "warning": []}
    for level, found in lines.items():
        monkeypatch.setattr(
            raw_metadata.tf.logging, level, lambda message, *args, found=found: found.append(message % args)
        )
    return lines


def put(root, *names, content=b""):
    for name in names:
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(content)


def labels_txt(root, text):
    (root / "labels.txt").write_text(text)


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


def test_labels_txt_gives_the_order(tmp_path, logged):
    put(tmp_path, "a/1.jpg", "b/1.jpg", "b/2.jpg")
    labels_txt(tmp_path, "0: b\n1: a\n")
    metadata = ImageClassificationRawMetadata(tmp_path)
    assert metadata.labels_list == ["b", "a"]
    assert metadata.paths == [f"{tmp_path}/{name}" for name in ("b/1.jpg", "b/2.jpg", "a/1.jpg")]
    np.testing.assert_array_equal(metadata.labels, [0, 0, 1])
    assert logged == {"info": [], "warning": []}


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
    with pytest.raises(ValueError, match=r"class folders 'e00', .*'e09' and 2 more \(no images: 1 \.txt\)\. Put"):
        ImageClassificationRawMetadata(tmp_path)


@pytest.mark.parametrize(
    ("names", "folders", "message"),
    [
        ([], [], "there is nothing in it"),
        (["1.jpg", "2.jpg"], [], r"only files, no class folders: '1\.jpg', '2\.jpg'"),
        (["labels.txt"], ["a", "b"], "folders are all empty: 'a', 'b'"),
        (["a/x.pdf"], ["b"], r"folders are all empty: 'a', 'b' \(no images: 1 \.pdf\)"),
        ([".hidden/1.jpg", "__MACOSX/a/1.jpg"], [], "there is nothing in it"),
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


def test_a_missing_base_dir(tmp_path):
    with pytest.raises(ValueError, match="base_dir='.*none' does not exist"):
        ImageClassificationRawMetadata(tmp_path / "none")


@pytest.mark.parametrize("name", ["cat ", " cat", "a\nb"])
def test_class_names_that_no_labels_file_can_hold(tmp_path, name):
    put(tmp_path, f"{name}/1.jpg")
    with pytest.raises(ValueError, match="can stand in labels.txt.*Rename"):
        ImageClassificationRawMetadata(tmp_path)


def test_the_parent_of_the_splits_is_warned_of(tmp_path, logged):
    put(tmp_path, "train/a/1.jpg", "eval/a/1.jpg")
    assert ImageClassificationRawMetadata(tmp_path).labels_list == ["eval", "train"]
    (line,) = logged["warning"]
    assert "'eval', 'train' and are taken as classes" in line
    put(tmp_path, "other/1.jpg")
    logged["warning"].clear()
    ImageClassificationRawMetadata(tmp_path)
    assert logged["warning"] == []


def test_stray_images_and_other_files_are_told(tmp_path, logged):
    put(tmp_path, "a/1.jpg", "a/x.txt", "a/y.txt", "s1.jpg", "s2.PNG", "README")
    assert ImageClassificationRawMetadata(tmp_path).total_num_samples == 1
    (warning,) = logged["warning"]
    assert warning.startswith("2 images lie in base_dir=") and "'s1.jpg', 's2.PNG'" in warning
    assert [line for line in logged["info"] if "which are no images: 2 .txt." in line]


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
        ValueError, match="redirect_dir='.*near' is no copy of base_dir: there is no file '.*near/b/s/1.jpg'"
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


def multilabel(root, labels, images=()):
    for name, text in labels.items():
        put(root, f"images/{name}")
        put(root, f"labels/{name}.txt", content=text.encode())
    put(root, *(f"images/{name}" for name in images))


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


def test_label_files_without_an_image(tmp_path, logged):
    multilabel(tmp_path, {"0.jpg": "a"})
    put(tmp_path, "labels/1.jpg.txt", "labels/2.jpg.txt", "labels/notes.md", "images/notes.md")
    assert MultilabelClassificationRawMetadata(tmp_path).total_num_samples == 1
    (line,) = logged["warning"]
    assert line.startswith("2 label files in") and "'1.jpg.txt', '2.jpg.txt'" in line
    assert any("which are no images: 1 .md" in line for line in logged["info"])


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

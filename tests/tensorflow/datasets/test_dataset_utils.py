"""The helpers known from TF-Slim."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from moxing.tensorflow.datasets import dataset_utils


def test_labels_file(tmp_path):
    assert not dataset_utils.has_labels(str(tmp_path))
    dataset_utils.write_label_file({1: "red rose", 0: "猫"}, str(tmp_path))
    assert (tmp_path / "labels.txt").read_text() == "0:猫\n1:red rose\n"
    assert dataset_utils.has_labels(tmp_path)
    assert dataset_utils.read_label_file(tmp_path) == {0: "猫", 1: "red rose"}


def test_another_file_name(tmp_path):
    dataset_utils.write_label_file({3: "c"}, tmp_path, filename="map.txt")
    assert dataset_utils.has_labels(tmp_path, "map.txt") and not dataset_utils.has_labels(tmp_path)
    assert dataset_utils.read_label_file(tmp_path, "map.txt") == {3: "c"}
    with pytest.raises(FileNotFoundError, match=r"labels\.txt"):
        dataset_utils.read_label_file(tmp_path)


def test_a_list_is_no_map(tmp_path):
    with pytest.raises(TypeError, match="labels_to_class_names"):
        dataset_utils.write_label_file(["a"], tmp_path)


@pytest.mark.parametrize(
    ("values", "expected"),
    [(3, [3]), ([1, -2], [1, -2]), ((), []), (np.array([[1], [2]], np.int32), [1, 2]), (np.int64(2**62), [2**62])],
)
def test_integers(values, expected):
    assert list(dataset_utils.int64_feature(values).int64_list.value) == expected


@pytest.mark.parametrize(("values", "expected"), [(1, [1.0]), ([0.5, 2], [0.5, 2.0]), (np.float32(0.25), [0.25])])
def test_floats(values, expected):
    assert list(dataset_utils.float_feature(values).float_list.value) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [(b"\xff", [b"\xff"]), ("é", ["é".encode()]), ([b"a", "b"], [b"a", b"b"]), ("\udcff", [b"\xff"])],
)
def test_bytes(values, expected):
    assert list(dataset_utils.bytes_feature(values).bytes_list.value) == expected


def test_wrong_types():
    for values in (1.5, "1", None):
        with pytest.raises(TypeError, match="expected integers"):
            dataset_utils.int64_feature(values)
    with pytest.raises(TypeError, match="expected numbers"):
        dataset_utils.float_feature("x")
    for values in (5, [b"a", 5]):
        with pytest.raises(TypeError, match="holds 5: expected bytes or str"):
            dataset_utils.bytes_feature(values)


def test_an_example_is_parsed_by_the_keys_of_slim():
    example = dataset_utils.image_to_tfexample(b"data", "jpg", 20, 30, 7)
    with tf.Graph().as_default(), tf.Session() as session:
        keys = {
            "image/encoded": tf.FixedLenFeature((), tf.string),
            "image/format": tf.FixedLenFeature((), tf.string),
            **{f"image/{key}": tf.FixedLenFeature((), tf.int64) for key in ("class/label", "height", "width")},
        }
        parsed = session.run(tf.parse_single_example(example.SerializeToString(), keys))
    assert parsed == {
        "image/encoded": b"data",
        "image/format": b"jpg",
        "image/class/label": 7,
        "image/height": 20,
        "image/width": 30,
    }

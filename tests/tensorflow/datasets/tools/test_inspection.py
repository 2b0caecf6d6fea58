"""The report on a dataset, and the picture of its samples."""

import json
import os

import pytest
import tensorflow.compat.v1 as tf
from colour_folders import COLOURS, textured
from tool_images import encoded, write_files

from moxing.framework.flags import FLAGS
from moxing.tensorflow.datasets.tools.conversion import convert_image_folder
from moxing.tensorflow.datasets.tools.conversion_plan import RecordFiles
from moxing.tensorflow.datasets.tools.inspection import ClassCount, Spread, inspect_dataset


def reasons(found, root):
    return {os.path.relpath(sample.file, root): sample.reason for sample in found.bad}


def test_a_good_folder(folder):
    found = inspect_dataset(folder)
    assert found.kind == "image folder" and not found.decoded
    assert found.classes == [ClassCount(i, name, 4) for i, name in enumerate(COLOURS)]
    assert (found.total, found.formats) == (12, {"PNG": 12})
    assert (found.width, found.height) == (Spread(60, 61, 63), Spread(40, 40, 40))
    assert not found.bad and not found.problems and not found.notes and not found.ignored


def test_what_cannot_be_used_is_named(bad_folder):
    found = inspect_dataset(bad_folder)
    assert reasons(found, bad_folder) == {
        "red/empty.jpg": "empty file",
        "blue/page.png": "not an image: begins with b'<html>'",
    }
    assert found.formats == {"PNG": 12, "JPEG": 2, "GIF": 1}
    assert found.ignored == {".txt": 1, "images outside the class folders": 1}
    full = inspect_dataset(bad_folder, full=True)
    assert set(reasons(full, bad_folder)) == {"red/cut.jpg", "red/empty.jpg", "blue/page.png"}
    assert "truncated" in reasons(full, bad_folder)["red/cut.jpg"]
    assert full.formats == {"PNG": 12, "JPEG": 1, "GIF": 1}


def test_too_many_pixels_are_bad_before_they_are_decoded(folder):
    FLAGS.set("max_image_pixels", 61 * 40)
    for full in (False, True):
        found = inspect_dataset(folder, full=full)
        assert {os.path.basename(sample.file) for sample in found.bad} == {"2.png", "3.png"}
        assert all("max_image_pixels=2440" in sample.reason for sample in found.bad)


def test_the_order_of_labels_txt(folder):
    (folder / "labels.txt").write_text("0: red\n1: green\n2: blue\n")
    assert [one.name for one in inspect_dataset(folder).classes] == ["red", "green", "blue"]


def test_what_training_refuses_is_reported_and_not_raised(folder):
    os.mkdir(folder / "empty")
    found = inspect_dataset(folder)
    assert ClassCount(1, "empty", 0) in found.classes
    assert found.problems and "no images in the class folders 'empty'" in found.problems[0]
    assert "Classes without a sample: empty." in found.notes
    os.rmdir(folder / "empty")
    (folder / "labels.txt").write_text("0: red\n1: green\n2: cyan\n")
    assert "labels without a folder: 'cyan'" in inspect_dataset(folder).problems[0]


def test_notes(folder, tmp_path):
    write_files(folder, {f"red/more{i}.png": encoded(textured(COLOURS["red"])) for i in range(20)})
    (note,) = inspect_dataset(folder).notes
    assert "red has 6 times as many samples as blue" in note
    write_files(tmp_path / "split", {f"{split}/{name}/0.png": encoded(textured((1, 2, 3)))
                             for split in ("train", "eval") for name in ("cat", "dog")})  # fmt: skip
    (note,) = inspect_dataset(tmp_path / "split").notes
    assert "All class folders contain the folders cat, dog." in note


def test_what_is_no_data_set(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        inspect_dataset(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="has no images"):
        inspect_dataset(tmp_path)
    write_files(tmp_path, {"train.bin": b"x"})
    with pytest.raises(ValueError, match="no class folders.*train.bin.*pass a pattern"):
        inspect_dataset(tmp_path)


@pytest.mark.parametrize("prefix", [None, "p"])
def test_records_are_reported_as_the_folder_was(tmp_path, folder, prefix):
    convert_image_folder(folder, tmp_path / "records", {"train": 0.7, "eval": 0.3}, records=RecordFiles(prefix=prefix))
    found, source = inspect_dataset(tmp_path / "records"), inspect_dataset(folder)
    assert found.kind == "TFRecord files"
    for name in ("classes", "formats", "width", "height", "bad", "notes"):
        assert getattr(found, name) == getattr(source, name)
    part = inspect_dataset(tmp_path / "records", pattern="*eval*", full=True)
    assert part.decoded and part.total == 3


def test_damaged_and_strange_records(tmp_path, folder):
    convert_image_folder(folder, tmp_path / "records")
    path = tmp_path / "records" / "train-00000-of-00001"
    content = bytearray(path.read_bytes())
    content[60] ^= 0xFF  # in the data of the first record
    path.write_bytes(content)

    def features(**values):
        return {
            "image/" + name.replace("_", "/"): tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
            if isinstance(value, bytes)
            else tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
            for name, value in values.items()
        }

    with tf.python_io.TFRecordWriter(str(tmp_path / "records" / "more.tfrecord")) as writer:
        for content in (
            features(encoded=b"no image", class_label=1),
            features(encoded=encoded(textured((1, 2, 3)), "JPEG"), class_label=8),
            features(encoded=b"x"),
        ):
            writer.write(tf.train.Example(features=tf.train.Features(feature=content)).SerializeToString())
        writer.write(b"\xff not an example")
    found = inspect_dataset(tmp_path / "records")
    assert found.total == 16 and found.formats == {"PNG": 11, "JPEG": 1}
    text = [sample.reason for sample in sorted(found.bad, key=lambda sample: (sample.file, sample.offset))]
    assert ["not an image" in text[0], "has no 'image/class/label'" in text[1]] == [True, True]
    assert [text[2], "checksum" in text[3]] == ["not a tf.train.Example", True]
    assert found.classes[-2:] == [ClassCount(8, "", 1), ClassCount(None, "", 3)]
    assert "Labels that labels.txt does not name: 8." in found.notes


def test_the_report_goes_into_json(bad_folder):
    report = json.loads(json.dumps(inspect_dataset(bad_folder).as_dict()))
    assert report["total"] == 17
    assert report["classes"][0] == {"label": 0, "name": "blue", "samples": 5}
    assert report["bad"][0]["reason"] and report["width"]["min"] == 60

"""An image folder as TFRecord files: nothing lost, nothing twice, the pixels that training sees."""

import json
import os
import shutil
import signal
import time

import numpy as np
import pytest
from tool_images import (
    bad_images,
    encoded,
    every_kind,
    many,
    names_in,
    pixels,
    read_all,
    records,
    value,
    write_files,
)

from helpers.launcher import MAIN, warm_moxing
from helpers.warm import PIPE, STDOUT, Program, WarmProcess
from moxing.tensorflow.datasets.raw.raw_dataset import ImageClassificationRawDataset
from moxing.tensorflow.datasets.raw.raw_metadata import ImageClassificationRawMetadata
from moxing.tensorflow.datasets.tfrecord.tfrecord_image import ImageClassificationTFRecordDataset
from moxing.tensorflow.datasets.tfrecord.tfrecord_metadata import ImageClassificationTFRecordMetadata
from moxing.tensorflow.datasets.tools.conversion import convert_image_folder
from moxing.tensorflow.datasets.tools.conversion_manifest import MANIFEST
from moxing.tensorflow.datasets.tools.conversion_plan import RecordFiles


def test_training_reads_the_same_pixels_from_records_as_from_files(tmp_path):
    write_files(tmp_path / "src", every_kind())
    done = convert_image_folder(tmp_path / "src", tmp_path / "dst", records=RecordFiles(shards=3, prefix="all"))
    assert done.records == {"train": 17} and not done.bad
    raw = read_all(
        lambda: ImageClassificationRawDataset(ImageClassificationRawMetadata(tmp_path / "src"), num_epochs=1)
    )
    metadata = ImageClassificationTFRecordMetadata(str(tmp_path / "dst"), "all_train_*.tfrecord")
    stored = read_all(lambda: ImageClassificationTFRecordDataset(metadata, num_epochs=1))
    assert metadata.labels_to_names == {0: "changed", 1: "kept", 2: "深 class"}
    assert set(raw) == set(stored) and len(raw) == 17
    for key, (label, image) in raw.items():
        assert stored[key][0] == label
        np.testing.assert_array_equal(stored[key][1], image, err_msg=str(key))


def test_the_numbers_of_labels_txt_are_kept(tmp_path):
    many(tmp_path / "src", 6)
    (tmp_path / "src" / "labels.txt").write_text("0: c\n1: a\n2: b\n")
    convert_image_folder(tmp_path / "src", tmp_path / "dst")
    assert (tmp_path / "dst" / "labels.txt").read_text() == "0:c\n1:a\n2:b\n"
    found = records(tmp_path / "dst", "train-00000-of-00001")
    assert {(value(one, "image/class/text"), value(one, "image/class/label")) for one in found} == {
        (b"c", 0), (b"a", 1), (b"b", 2),
    }  # fmt: skip


def test_bad_images_are_left_out_and_listed(tmp_path):
    bad = bad_images()
    write_files(tmp_path / "src", {**every_kind(), **{name: content for name, (content, _) in bad.items()}})
    write_files(tmp_path / "src", {"bad/good.jpg": encoded(pixels(), "JPEG")})
    done = convert_image_folder(tmp_path / "src", tmp_path / "dst")
    assert done.records == {"train": 18} and done.images == 24
    lines = [json.loads(line) for line in (tmp_path / "dst" / "bad_samples.jsonl").read_text().splitlines()]
    assert {os.path.relpath(line["file"], tmp_path / "src") for line in lines} == set(bad)
    for line in lines:
        assert line["offset"] is None
        assert bad[os.path.relpath(line["file"], tmp_path / "src")][1] in line["reason"]
    assert [sample.file for sample in done.bad] == [line["file"] for line in lines]
    # What training leaves out is what was left out here.
    metadata = ImageClassificationTFRecordMetadata(str(tmp_path / "dst"), "train-*")
    assert len(read_all(lambda: ImageClassificationTFRecordDataset(metadata, num_epochs=1))) == 18


@pytest.mark.slow
def test_a_killed_conversion_goes_on(tmp_path):
    # Large enough that there is time for the kill.
    write_files(
        tmp_path / "src", {f"{'abc'[i % 3]}/{i:03d}.bmp": encoded(pixels(size=(400, 300)), "BMP") for i in range(120)}
    )
    words = ("data", "convert", str(tmp_path / "src"), str(tmp_path / "dst"), "--shards", "12")
    process = WarmProcess(Program("moxing", MAIN, words), stdout=PIPE, stderr=STDOUT)
    deadline = time.monotonic() + 120
    while len(names_in(tmp_path / "dst") if (tmp_path / "dst").is_dir() else []) < 3 and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.kill()
    output, _ = process.communicate()
    before = {name: (tmp_path / "dst" / name).stat().st_mtime_ns for name in names_in(tmp_path / "dst")}
    assert process.returncode == -signal.SIGKILL, output
    assert 3 <= len(before) < 12
    assert not json.loads((tmp_path / "dst" / MANIFEST).read_text())["finished"]

    result = warm_moxing(*words)
    assert (result.returncode, result.stderr) == (0, "")
    assert "120 records in 12 files" in result.stdout
    after = {name: (tmp_path / "dst" / name).stat().st_mtime_ns for name in names_in(tmp_path / "dst")}
    # The last one may have been complete and not yet in the manifest.
    assert sum(after[name] == before[name] for name in before) >= len(before) - 1
    found = [value(one, "image/filename") for name in after for one in records(tmp_path / "dst", name)]
    assert sorted(found) == sorted(f"{i:03d}.bmp".encode() for i in range(120))
    assert not [name for name in os.listdir(tmp_path / "dst") if name.endswith(".tmp")]


def test_a_repaired_folder_leaves_no_list_of_bad_images(tmp_path):
    many(tmp_path / "src", 6)
    write_files(tmp_path / "src", {"a/bad.png": b""})
    assert len(convert_image_folder(tmp_path / "src", tmp_path / "dst").bad) == 1
    os.unlink(tmp_path / "src" / "a" / "bad.png")
    convert_image_folder(tmp_path / "src", tmp_path / "dst", overwrite=True)
    assert not (tmp_path / "dst" / "bad_samples.jsonl").exists()


def test_names_that_are_no_text(tmp_path):
    os.makedirs(os.fsencode(tmp_path / "src") + b"/caf\xe9")
    with open(os.fsencode(tmp_path / "src") + b"/caf\xe9/\xff.png", "wb") as stream:
        stream.write(encoded(pixels(), "PNG"))
    with open(os.fsencode(tmp_path / "src") + b"/caf\xe9/\xfe.png", "wb") as stream:
        stream.write(b"bad")
    done = convert_image_folder(tmp_path / "src", tmp_path / "dst")
    (features,) = records(tmp_path / "dst", "train-00000-of-00001")
    assert value(features, "image/class/text") == b"caf\xe9"
    assert value(features, "image/filename") == b"\xff.png"
    assert os.fsencode(done.bad[0].file).endswith(b"\xfe.png")
    assert b"\xfe.png" in (tmp_path / "dst" / "bad_samples.jsonl").read_bytes()
    assert convert_image_folder(tmp_path / "src", tmp_path / "dst").bad == done.bad


def test_wrong_arguments_are_named(tmp_path):
    many(tmp_path / "src", 6)
    for arguments, message in (
        ({"records": RecordFiles(shards=7)}, "shards=7: the split 'train' has only 6 images"),
        ({"threads": 0}, "threads=0"),
        ({"split_spec": {"train": 2}}, "sums to 2"),
        ({"split_spec": {"a": 0.3, "b": 0.3, "c": 0.4}}, "classes with fewer files than the 3 splits"),
    ):
        with pytest.raises(ValueError, match=message.replace("(", r"\(")):
            convert_image_folder(tmp_path / "src", tmp_path / "dst", **arguments)
    with pytest.raises(ValueError, match="src_dir=.*does not exist"):
        convert_image_folder(tmp_path / "nowhere", tmp_path / "dst")
    with pytest.raises(ValueError, match="lies in src_dir"):
        convert_image_folder(tmp_path / "src", tmp_path / "src" / "dst")
    with pytest.raises(ValueError, match="is a file"):
        convert_image_folder(tmp_path / "src", tmp_path / "src" / "a" / "000.png")
    assert not (tmp_path / "dst").exists()


@pytest.mark.realdata
def test_real_photos(tmp_path, real_data):
    for name in ("daisy", "roses"):
        os.makedirs(tmp_path / "src" / name)
        for path in sorted((real_data / "flowers" / name).iterdir())[:20]:
            shutil.copy(path, tmp_path / "src" / name)
    done = convert_image_folder(
        tmp_path / "src", tmp_path / "dst", {"train": 0.9, "eval": 0.1}, records=RecordFiles(prefix="flowers")
    )
    assert (done.records, done.kept, done.changed) == ({"train": 36, "eval": 4}, {"JPEG": 40}, {})

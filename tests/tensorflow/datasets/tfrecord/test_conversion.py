"""An image folder as TFRecord files: nothing lost, nothing twice, the pixels that training sees."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from PIL import Image

from moxing.tensorflow.datasets.raw.raw_dataset import ImageClassificationRawDataset
from moxing.tensorflow.datasets.raw.raw_metadata import ImageClassificationRawMetadata
from moxing.tensorflow.datasets.raw.split import split_image_classification_dataset
from moxing.tensorflow.datasets.target import only_process
from moxing.tensorflow.datasets.tfrecord import conversion
from moxing.tensorflow.datasets.tfrecord.conversion import MANIFEST, convert_image_folder
from moxing.tensorflow.datasets.tfrecord.image_records import ImageDecoder, store_image
from moxing.tensorflow.datasets.tfrecord.tfrecord_image import ImageClassificationTFRecordDataset
from moxing.tensorflow.datasets.tfrecord.tfrecord_metadata import ImageClassificationTFRecordMetadata

RNG = np.random.default_rng(7)


def pixels(mode="RGB", size=(23, 17)):
    channels = {"L": (), "RGB": (3,), "RGBA": (4,), "CMYK": (4,), "LA": (2,)}[mode]
    return Image.fromarray(RNG.integers(0, 256, (size[1], size[0], *channels), np.uint8), mode)


def encoded(image, kind, **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def every_kind():
    """Name to content of images of all kinds that can be decoded; those under `kept/` stay as they are."""
    deep = Image.fromarray(RNG.integers(0, 65536, (17, 23), np.uint16))
    return {
        "kept/colour.jpg": encoded(pixels(), "JPEG"),
        "kept/progressive.jpg": encoded(pixels(), "JPEG", progressive=True),
        "kept/grey.jpg": encoded(pixels("L"), "JPEG"),
        "kept/a png called.jpg": encoded(pixels(), "PNG"),
        "kept/grey.png": encoded(pixels("L"), "PNG"),
        "changed/cmyk.jpg": encoded(pixels("CMYK"), "JPEG"),
        "changed/alpha.png": encoded(pixels("RGBA"), "PNG"),
        "changed/grey alpha.png": encoded(pixels("LA"), "PNG"),
        "changed/transparent colour.png": encoded(pixels(), "PNG", transparency=(1, 2, 3)),
        "changed/palette.png": encoded(pixels().quantize(32), "PNG"),
        "changed/deep.png": encoded(deep, "PNG"),
        "changed/bits.png": encoded(pixels("L").convert("1"), "PNG"),
        "changed/a.gif": encoded(pixels(), "GIF"),
        "changed/a.bmp": encoded(pixels(), "BMP"),
        "changed/lossy.webp": encoded(pixels(), "WEBP"),
        "changed/lossless.webp": encoded(pixels("RGBA"), "WEBP", lossless=True),
        "深 class/é.jpg": encoded(pixels(), "JPEG"),
    }


def bad_images():
    whole = encoded(pixels(size=(90, 70)), "JPEG")
    png = bytearray(encoded(pixels(), "PNG"))
    png[60] ^= 0xFF
    return {
        "bad/empty.jpg": (b"", "empty file"),
        "bad/page.jpg": (b"<html>404</html>", "not an image"),
        "bad/cut.jpg": (whole[: len(whole) // 2], "truncated"),
        "bad/zeros.png": (bytes(500), "only zero bytes"),
        "bad/damaged.png": (bytes(png), "PNG, 23x17"),
        "bad/scan.tif": (encoded(pixels(), "TIFF"), "TIFF file"),
    }


def put(root, files):
    for name, content in files.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(content)


def many(root, count=60):
    put(root, {f"{'abc'[i % 3]}/{i:03d}.png": encoded(pixels(size=(9, 5)), "PNG") for i in range(count)})


def records(directory, name):
    path = os.path.join(directory, name)
    return [
        tf.train.Example.FromString(record).features.feature for record in tf.python_io.tf_record_iterator(str(path))
    ]


def value(features, key):
    kind = features[key]
    return (kind.bytes_list.value or kind.int64_list.value)[0]


def read_all(make):
    """Class and file name to pixels and label, as a data set delivers them."""
    found = {}
    with tf.Graph().as_default(), tf.Session() as session:
        tensors = make().get(["image", "label", "label_desc", "image_name"])
        while True:
            try:
                image, label, desc, name = session.run(tensors)
            except tf.errors.OutOfRangeError:
                return found
            assert (desc, name) not in found
            found[desc, name] = (int(label), image)


def names_in(directory):
    return sorted(name for name in os.listdir(directory) if "-of-" in name)


def test_training_reads_the_same_pixels_from_records_as_from_files(tmp_path):
    put(tmp_path / "src", every_kind())
    done = convert_image_folder(tmp_path / "src", tmp_path / "dst", shards=3, prefix="all")
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


def test_plain_images_are_stored_byte_by_byte_and_the_others_become_png(tmp_path):
    files = every_kind()
    put(tmp_path / "src", files)
    done = convert_image_folder(tmp_path / "src", tmp_path / "dst")
    assert done.kept == {"JPEG": 4, "PNG": 2}
    assert done.changed == {
        "CMYK JPEG to PNG": 1,
        "PNG with alpha to PNG": 3,
        "palette PNG to PNG": 1,
        "16-bit PNG to PNG": 1,
        "1-bit PNG to PNG": 1,
        "GIF to PNG": 1,
        "BMP to PNG": 1,
        "WebP to PNG": 2,
    }
    for features in records(tmp_path / "dst", "train-00000-of-00001"):
        name = f"{value(features, 'image/class/text').decode()}/{value(features, 'image/filename').decode()}"
        content = value(features, "image/encoded")
        with Image.open(io.BytesIO(content)) as image:
            assert value(features, "image/format").decode() == image.format.lower() in ("jpeg", "png")
            assert (value(features, "image/width"), value(features, "image/height")) == image.size
            assert image.mode == {1: "L", 3: "RGB"}[value(features, "image/channels")]
        if not name.startswith("changed/"):
            assert content == files[name]
        assert value(features, "image/colorspace") == (b"Grayscale" if "kept/grey" in name else b"RGB")
    assert (tmp_path / "dst" / "labels.txt").read_text() == "0:changed\n1:kept\n2:深 class\n"


def test_files_are_mixed_equal_in_size_and_the_same_every_time(tmp_path):
    many(tmp_path / "src")
    names = [f"train-0000{i}-of-00004" for i in range(4)]
    assert convert_image_folder(tmp_path / "src", tmp_path / "one", shards=4).shards == {"train": names}
    convert_image_folder(tmp_path / "src", tmp_path / "two", shards=4, threads=1)
    for name in names:
        content = records(tmp_path / "one", name)
        assert len(content) == 15
        assert {value(features, "image/class/text") for features in content} == {b"a", b"b", b"c"}
        order = [value(features, "image/class/label") for features in content]
        assert order != sorted(order)
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_splits_are_those_of_the_split_command(tmp_path):
    many(tmp_path / "src")
    spec = {"train": 0.8, "eval": 0.1}
    done = convert_image_folder(tmp_path / "src", tmp_path / "dst", spec, prefix="p")
    assert done.records == split_image_classification_dataset(spec, tmp_path / "src", tmp_path / "split")
    for split in spec:
        converted = {value(features, "image/filename").decode() for features in records(tmp_path / "dst", f"p_{split}_00000-of-00001.tfrecord")}  # fmt: skip  # noqa: E501
        assert converted == {path.name for path in (tmp_path / "split" / split).rglob("*.png")}


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
    put(tmp_path / "src", {**every_kind(), **{name: content for name, (content, _) in bad.items()}})
    put(tmp_path / "src", {"bad/good.jpg": encoded(pixels(), "JPEG")})
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


def test_large_images_are_made_smaller(tmp_path):
    smooth = Image.linear_gradient("L").resize((400, 200)).convert("RGB")
    put(tmp_path / "src", {"a/l.jpg": encoded(smooth, "JPEG"), "a/l.gif": encoded(smooth, "GIF"),
                           "a/tall.png": encoded(smooth.resize((101, 999)), "PNG"),
                           "a/small.jpg": encoded(pixels(size=(300, 100)), "JPEG")})  # fmt: skip
    done = convert_image_folder(tmp_path / "src", tmp_path / "dst", resize_short_side=100)
    assert done.kept == {"JPEG": 1}
    assert done.changed == {
        "JPEG made smaller, to JPEG": 1, "GIF made smaller, to PNG": 1, "PNG made smaller, to PNG": 1,
    }  # fmt: skip
    found = {value(one, "image/filename"): one for one in records(tmp_path / "dst", "train-00000-of-00001")}
    sizes = {name: (value(one, "image/width"), value(one, "image/height")) for name, one in found.items()}
    assert sizes == {b"l.jpg": (200, 100), b"l.gif": (200, 100), b"tall.png": (100, 989), b"small.jpg": (300, 100)}
    with Image.open(io.BytesIO(value(found[b"l.jpg"], "image/encoded"))) as image:
        assert image.format == "JPEG" and image.size == (200, 100)
        np.testing.assert_allclose(np.asarray(image), np.asarray(smooth.resize((200, 100))), atol=6)


def test_a_killed_conversion_goes_on(tmp_path):
    # Large enough that there is time for the kill.
    put(tmp_path / "src", {f"{'abc'[i % 3]}/{i:03d}.bmp": encoded(pixels(size=(400, 300)), "BMP") for i in range(120)})
    command = [sys.executable, "-m", "moxing", "data", "convert", tmp_path / "src", tmp_path / "dst", "--shards", "12"]
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
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

    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=240)
    assert (result.returncode, result.stderr) == (0, "")
    assert "120 records in 12 files" in result.stdout
    after = {name: (tmp_path / "dst" / name).stat().st_mtime_ns for name in names_in(tmp_path / "dst")}
    # The last one may have been complete and not yet in the manifest.
    assert sum(after[name] == before[name] for name in before) >= len(before) - 1
    found = [value(one, "image/filename") for name in after for one in records(tmp_path / "dst", name)]
    assert sorted(found) == sorted(f"{i:03d}.bmp".encode() for i in range(120))
    assert not [name for name in os.listdir(tmp_path / "dst") if name.endswith(".tmp")]


class Stop(Exception):
    pass


def interrupt(monkeypatch, after):
    seen = []

    def stops(*arguments):
        seen.append(1)
        if len(seen) > after:
            raise Stop
        return store_image(*arguments)

    monkeypatch.setattr(conversion, "store_image", stops)


def test_complete_files_are_not_written_again(tmp_path, monkeypatch):
    many(tmp_path / "src")
    dst = tmp_path / "dst"
    interrupt(monkeypatch, 35)
    with pytest.raises(Stop):
        convert_image_folder(tmp_path / "src", dst, shards=4, threads=1)
    assert len(names_in(dst)) == 2
    (dst / ".mox-0123.tmp").write_bytes(b"left by a kill")
    # A file that lost its end is written again.
    os.truncate(dst / "train-00001-of-00004", 100)
    converted = []
    monkeypatch.setattr(conversion, "store_image", lambda *arguments: converted.append(1) or store_image(*arguments))
    done = convert_image_folder(tmp_path / "src", dst, shards=4)
    assert (done.resumed, len(converted), done.records) == (1, 45, {"train": 60})
    assert not (dst / ".mox-0123.tmp").exists()
    again = convert_image_folder(tmp_path / "src", dst, shards=4)
    assert (again.resumed, len(converted)) == (4, 45)
    assert (again.records, again.kept) == (done.records, done.kept)


def test_another_order_is_refused_unless_overwrite(tmp_path, monkeypatch):
    many(tmp_path / "src")
    dst = tmp_path / "dst"
    interrupt(monkeypatch, 35)
    with pytest.raises(Stop):
        convert_image_folder(tmp_path / "src", dst, shards=4, threads=1)
    monkeypatch.undo()
    with pytest.raises(
        ValueError, match=r"interrupted conversion, with another number of shards \(.moxing_convert.json"
    ):
        convert_image_folder(tmp_path / "src", dst, shards=2)
    put(tmp_path / "src", {"a/new.png": encoded(pixels(), "PNG")})
    with pytest.raises(ValueError, match="with other images.*overwrite=True"):
        convert_image_folder(tmp_path / "src", dst, shards=4)
    assert len(names_in(dst)) == 2
    convert_image_folder(tmp_path / "src", dst, shards=2, overwrite=True)
    assert names_in(dst) == ["train-00000-of-00002", "train-00001-of-00002"]
    with pytest.raises(ValueError, match="finished conversion, with another number of shards, another prefix "):
        convert_image_folder(tmp_path / "src", dst, prefix="p")
    convert_image_folder(tmp_path / "src", dst, prefix="p", overwrite=True)
    assert names_in(dst) == ["p_train_00000-of-00001.tfrecord"]


def test_records_of_somebody_else_are_not_mixed_with_ours(tmp_path):
    many(tmp_path / "src", 6)
    put(tmp_path / "dst", {"train-00000-of-00009": b"theirs", "other": b"kept"})
    with pytest.raises(ValueError, match="has records already, train-00000-of-00009"):
        convert_image_folder(tmp_path / "src", tmp_path / "dst")
    convert_image_folder(tmp_path / "src", tmp_path / "dst", overwrite=True)
    assert names_in(tmp_path / "dst") == ["train-00000-of-00001"]
    assert (tmp_path / "dst" / "other").read_bytes() == b"kept"


def test_an_image_that_changed_is_noticed(tmp_path):
    many(tmp_path / "src", 6)
    convert_image_folder(tmp_path / "src", tmp_path / "dst")
    put(tmp_path / "src", {"a/000.png": encoded(pixels(size=(50, 50)), "PNG")})
    with pytest.raises(ValueError, match="other images"):
        convert_image_folder(tmp_path / "src", tmp_path / "dst")


def test_a_repaired_folder_leaves_no_list_of_bad_images(tmp_path):
    many(tmp_path / "src", 6)
    put(tmp_path / "src", {"a/bad.png": b""})
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
        ({"shards": 0}, "shards=0"),
        ({"shards": 7}, "shards=7: the split 'train' has 6 images only"),
        ({"threads": 0}, "threads=0"),
        ({"resize_short_side": -1}, "resize_short_side=-1"),
        ({"prefix": "a/b"}, "prefix='a/b'"),
        ({"split_spec": {"train": 2}}, "adds up to 2"),
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


def test_two_processes_do_not_write_the_same_records(tmp_path):
    many(tmp_path / "src", 6)
    with only_process(str(tmp_path), "writing"):
        with pytest.raises(ValueError, match="another process is writing there"):
            convert_image_folder(tmp_path / "src", tmp_path)


def test_the_default_number_of_files_follows_the_size(tmp_path, monkeypatch):
    many(tmp_path / "src")
    total = sum(path.stat().st_size for path in (tmp_path / "src").rglob("*.png"))
    monkeypatch.setattr(conversion, "_SHARD_BYTES", total // 3)
    assert len(convert_image_folder(tmp_path / "src", tmp_path / "dst").shards["train"]) == 3


def test_a_decoder_serves_many_threads():
    from concurrent.futures import ThreadPoolExecutor

    images = [pixels(size=(10 + i % 40, 5 + i % 30)) for i in range(100)]
    contents = [encoded(image, "PNG") for image in images]
    with ImageDecoder() as decoder, ThreadPoolExecutor(8) as pool:
        for image, found in zip(images, pool.map(decoder.pixels, contents), strict=True):
            np.testing.assert_array_equal(found, np.asarray(image))


@pytest.mark.realdata
def test_real_photos(tmp_path, real_data):
    for name in ("daisy", "roses"):
        os.makedirs(tmp_path / "src" / name)
        for path in sorted((real_data / "flowers" / name).iterdir())[:20]:
            shutil.copy(path, tmp_path / "src" / name)
    done = convert_image_folder(tmp_path / "src", tmp_path / "dst", {"train": 0.9, "eval": 0.1}, prefix="flowers")
    assert (done.records, done.kept, done.changed) == ({"train": 36, "eval": 4}, {"JPEG": 40}, {})
